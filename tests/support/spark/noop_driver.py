"""A driver with Spark and without Kafka: `python -m tests.support.spark.noop_driver`.

Its tasks stay until their epoch ends; its snapshot has the pid of each task. With a connector named
`late` its conductor starts only at the third try, as if a cluster were unreachable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import ControlMessage, Hello
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.engine.driver.driver_main import main
from sparkmirror.engine.noop_conductor import NoopConductor
from sparkmirror.errors import ClusterUnavailable

LATE_CONNECTOR = "late"


@dataclass(slots=True)
class PidReportingConductor(NoopConductor):
    """A no-op conductor whose snapshot has the pid of each task."""

    hold_tasks: bool = True
    pids: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        self.counts["start"] += 1
        if self.job.connector == LATE_CONNECTOR and self.counts["start"] < 3:
            raise ClusterUnavailable("source", "not there yet")

    def on_task_joined(self, hello: Hello, send: Callable[[ControlMessage], None]) -> None:
        self.pids[str(hello.task)] = hello.pid
        NoopConductor.on_task_joined(self, hello, send)

    def snapshot(self) -> CopySnapshot:
        return CopySnapshot(lanes={"counts": dict(self.counts), "pids": dict(self.pids)})


if __name__ == "__main__":
    main(lambda job, _: PidReportingConductor(job))
