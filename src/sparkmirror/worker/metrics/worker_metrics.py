"""All figures of one process at one moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sparkmirror.config.definition.plugin_versions import PLUGIN_VERSION
from sparkmirror.connect.distributed.rebalance_times import RebalanceTimes
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import WorkerStatus
from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.names.exposed_names import expose
from sparkmirror.metrics.process_metrics import ProcessFigures
from sparkmirror.metrics.series_limit import limit_series
from sparkmirror.security.tls.ssl_config import SslConfig
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.metrics.certificate_figures import CertificateFigures
from sparkmirror.worker.metrics.coordinator_figures import (
    HerderReading,
    ProgramInfo,
    program_figures,
)
from sparkmirror.worker.metrics.herder_metrics import health_figures, herder_figures
from sparkmirror.worker.metrics.metrics_settings import DEFAULT_EXPOSURE, ExposureSettings
from sparkmirror.worker.server_info import program_commit


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
        exposure: ExposureSettings = DEFAULT_EXPOSURE,
    ) -> None:
        """`listeners` are the certificates of the REST API, if it has any."""
        assert herders, "a process has at least one herder"
        self._herders = tuple(herders)
        self._monitor = monitor
        self._get_health = get_health
        self._certificates = CertificateFigures(monitor.clients, listeners)
        self._process = ProcessFigures()
        self._exposure = exposure
        self._program = ProgramInfo(
            version=PLUGIN_VERSION, commit=program_commit(), started_s=time.time()
        )

    def figures(self) -> list[Figure]:
        """Return all figures at this moment, with the names of the rule sets that are wanted."""
        named = expose(self._all_figures(), self._exposure.rule_sets)
        return limit_series(named, self._exposure.max_series)

    def _all_figures(self) -> Iterator[Figure]:
        readings = [
            HerderReading(
                prefix=one.prefix,
                herder=one.herder.figures(),
                rebalances=one.rebalances.summary(),
            )
            for one in self._herders
        ]
        yield from health_figures(self._get_health())
        yield from herder_figures(readings)
        yield from program_figures([one.herder.worker_id for one in readings], self._program)
        yield from self._monitor.figures()
        yield from self._certificates.figures()
        yield from self._process.figures()
