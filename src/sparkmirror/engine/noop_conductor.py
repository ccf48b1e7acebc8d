"""A rehearsal: a conductor that has nothing to copy, for trying out Spark itself.

Tasks are welcomed and, unless they are to stay, drained at once. Needs no cluster.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import ControlMessage, Drain, Hello, TaskDone, Welcome
from sparkmirror.copy.driver.pending_receipts import MissingReceipt
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.snapshot import CopySnapshot

UNREACHABLE_CLIENT = {"bootstrap.servers": "127.0.0.1:1"}


def job_without_partitions(tasks: int) -> CopyJob:
    """A job whose tasks have no partitions."""
    return CopyJob(
        connector="rehearsal",
        group_id="rehearsal",
        settings=CopySettings(source=UNREACHABLE_CLIENT, target=UNREACHABLE_CLIENT),
        offsets_topic="rehearsal",
        remote_topics={},
        tasks=((),) * tasks,
    )


@dataclass(slots=True)
class NoopConductor:
    """Conducts nobody. `counts` tells what happened, by the names of the methods."""

    job: CopyJob
    hold_tasks: bool = False
    """Whether tasks stay until their epoch ends."""
    counts: Counter[str] = field(default_factory=Counter)
    _senders: dict[Hello, Callable[[ControlMessage], None]] = field(default_factory=dict)
    _draining: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """There is nothing to be done."""

    def on_task_joined(self, hello: Hello, send: Callable[[ControlMessage], None]) -> None:
        """Welcome it."""
        with self._lock:
            self.counts["joined"] += 1
            self._senders[hello] = send
            send(Welcome(settings=self.job.settings.to_json()))
            if self._draining or not self.hold_tasks:
                send(Drain())

    def on_task_message(self, hello: Hello, message: ControlMessage) -> None:
        """Notice who is done."""
        with self._lock:
            self.counts[message.type] += 1
            if isinstance(message, TaskDone):
                self._senders.pop(hello, None)

    def on_task_left(self, hello: Hello) -> None:
        """See it off."""
        with self._lock:
            self.counts["left"] += 1
            self._senders.pop(hello, None)

    def end_epoch(self) -> None:
        """Drain everybody."""
        with self._lock:
            self.counts["end_epoch"] += 1
            for send in self._senders.values():
                send(Drain())

    def drain(self) -> None:
        """Drain everybody, and those who come later."""
        self._draining = True
        self.end_epoch()

    def is_drained(self) -> bool:
        """Whether everybody has gone."""
        with self._lock:
            return self._draining and not self._senders

    def set_rate(self, bytes_per_s: int) -> None:
        """Nothing is no faster at any rate; it is only noted."""
        self.counts["rate"] = bytes_per_s

    def replan(self, job: CopyJob) -> None:
        """Nothing is nothing, however it is planned."""
        with self._lock:
            self.counts["replan"] += 1
            self.job = job

    def snapshot(self) -> CopySnapshot:
        """The counts, as the lanes of a topic that there is not."""
        with self._lock:
            return CopySnapshot(lanes={"rehearsal": dict(self.counts)})

    def close_epoch(self, epoch: int, *, landed: bool) -> list[MissingReceipt]:
        """Nothing was copied."""
        self.counts["landed" if landed else "failed"] = epoch
        return []

    def failure(self) -> Exception | None:
        """Nothing can go wrong."""
        return None

    def stop(self) -> None:
        """There is nothing to be remembered."""
