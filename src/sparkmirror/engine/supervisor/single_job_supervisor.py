"""One job in a Spark application of its own, as `sparkmirror copy` runs it.

with SingleJobSupervisor(spec) as supervisor:
    for status in supervisor.statuses():
        if ...:
            supervisor.drain()
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from sparkmirror.backoff import Backoff
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverStatus
from sparkmirror.engine.supervisor.driver_supervisor import (
    DRAIN_TIMEOUT_S,
    STOP_TIMEOUT_S,
    DriverSupervisor,
)
from sparkmirror.engine.supervisor.idle_driver import DRIVER_MODULE
from sparkmirror.errors import MirrorError


class SingleJobSupervisor:
    """Runs the only job of a spec. One thread owns it."""

    def __init__(
        self, spec: DriverSpec, *, module: str = DRIVER_MODULE, backoff: Backoff | None = None
    ) -> None:
        """`module` is the Python module that the driver process runs."""
        [job] = spec.jobs
        self._driver = DriverSupervisor(spec, module=module, backoff=backoff)
        self._job = self._driver.job(job.name)
        self._drain_timeout_s = 0.0

    def start(self) -> None:
        """Start the driver; returns at once."""
        self._driver.start()

    @property
    def status(self) -> DriverStatus:
        """The latest status of the job."""
        return self._job.status

    def statuses(self) -> Iterator[DriverStatus]:
        """Every new status of the job (a slow reader gets only the latest), until it has ended.

        After `drain` they end when the driver has ended.
        """
        yield from self._job.statuses()
        self._driver.wait(self._drain_timeout_s)

    def failure(self) -> MirrorError | None:
        """Why the job has failed, if it has."""
        return self._job.failure()

    def replan(self, job: CopyJob) -> None:
        """Continue with another plan of the job; later drivers start with it."""
        self._job.replan(job)

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to so many bytes per second; 0 means no limit."""
        self._job.set_rate(bytes_per_s)

    def start_next_epoch(self) -> None:
        """End the epoch, so that its receipts are written; the next one follows."""
        self._driver.start_next_epoch()

    def drain(self, within_s: float = DRAIN_TIMEOUT_S) -> None:
        """Finish the batches in flight, write the receipts, then end; returns at once."""
        self._drain_timeout_s = within_s
        self._driver.drain(within_s)

    def stop(self, within_s: float = STOP_TIMEOUT_S) -> None:
        """End now; returns when no process is left."""
        self._driver.stop(within_s)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
