"""A driver with Spark and without Kafka: `python -m tests.support.spark_driver`.

Its tasks stay until their epoch ends; its snapshot tells in which process each task is. With a job
whose connector is called `late` it is as if a cluster could be reached at the third try only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.copy.messages import Hello, Message
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.engine.driver import main
from sparkmirror.engine.rehearsal import Rehearsal
from sparkmirror.errors import ClusterUnavailable

LATE = "late"


@dataclass(slots=True)
class Shown(Rehearsal):
    """A rehearsal that shows where its tasks are, by task: `attempt` and `pid`."""

    stay: bool = True
    pids: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        self.counts["start"] += 1
        if self.job.connector == LATE and self.counts["start"] < 3:
            raise ClusterUnavailable("source", "it is not there yet")

    def joined(self, hello: Hello, send: Callable[[Message], None]) -> None:
        self.pids[str(hello.task)] = hello.pid
        Rehearsal.joined(self, hello, send)

    def snapshot(self) -> Snapshot:
        return Snapshot(lanes={"counts": dict(self.counts), "pids": dict(self.pids)})


if __name__ == "__main__":
    main(Shown)
