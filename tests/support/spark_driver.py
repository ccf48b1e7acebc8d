"""A driver with Spark and without Kafka: `python -m tests.support.spark_driver`.

Its tasks stay until their epoch ends; its snapshot tells in which process each task is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.copy.messages import Hello, Message
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.engine.driver import main
from sparkmirror.engine.rehearsal import Rehearsal


@dataclass(slots=True)
class Shown(Rehearsal):
    """A rehearsal that shows where its tasks are, by task: `attempt` and `pid`."""

    stay: bool = True
    pids: dict[str, int] = field(default_factory=dict)

    def joined(self, hello: Hello, send: Callable[[Message], None]) -> None:
        self.pids[str(hello.task)] = hello.pid
        Rehearsal.joined(self, hello, send)

    def snapshot(self) -> Snapshot:
        return Snapshot(lanes={"counts": dict(self.counts), "pids": dict(self.pids)})


if __name__ == "__main__":
    main(Shown)
