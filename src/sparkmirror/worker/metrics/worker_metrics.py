"""All figures of one process at one moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparkmirror.connect.distributed.rebalance_times import RebalanceTimes
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import WorkerStatus
from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.process_metrics import ProcessFigures
from sparkmirror.security.tls.ssl_config import SslConfig
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.metrics.certificate_figures import CertificateFigures
from sparkmirror.worker.metrics.herder_metrics import HerderReading, health_figures, herder_figures


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHerder:
    """A herder, the rebalances of its group, and the prefix that its connectors have in REST."""

    herder: DistributedHerder
    rebalances: RebalanceTimes
    prefix: str = ""


class WorkerMetrics:
    """Reads the figures. Any thread may call; no call waits for a cluster or a driver."""

    def __init__(
        self,
        herders: Sequence[MeasuredHerder],
        monitor: WorkerMonitor,
        get_health: Callable[[], WorkerStatus],
        listeners: SslConfig | None = None,
    ) -> None:
        """`listeners` are the certificates of the REST API, if it has any."""
        assert herders, "a process has at least one herder"
        self._herders = tuple(herders)
        self._monitor = monitor
        self._get_health = get_health
        self._certificates = CertificateFigures(monitor.clients, listeners)
        self._process = ProcessFigures()

    def figures(self) -> list[Figure]:
        """Return all figures at this moment."""
        readings = [
            HerderReading(
                prefix=one.prefix,
                herder=one.herder.figures(),
                rebalances=one.rebalances.summary(),
            )
            for one in self._herders
        ]
        return [
            *health_figures(self._get_health()),
            *herder_figures(readings),
            *self._monitor.figures(),
            *self._certificates.figures(),
            *self._process.figures(),
        ]
