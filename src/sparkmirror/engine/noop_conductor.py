"""A conductor without partitions, for running Spark without any Kafka cluster.

The class archive is built with it (`engine.driver.cds_archive`), and tests of the driver use it. It
welcomes every task and drains it at once, or holds it until its epoch ends.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import ControlMessage, Drain, Hello, TaskDone, Welcome
from sparkmirror.copy.driver.lost_attempt_receipts import MissingReceipt
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.receipt import AttemptEpoch, Receipt
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.model import TopicPartition

UNREACHABLE_CLIENT = {"bootstrap.servers": "127.0.0.1:1"}
_NAME = "noop"


def job_without_partitions(tasks: int) -> CopyJob:
    """A job whose tasks have no partitions."""
    return CopyJob(
        connector=_NAME,
        group_id=_NAME,
        settings=CopySettings(source=UNREACHABLE_CLIENT, target=UNREACHABLE_CLIENT),
        offsets_topic=_NAME,
        remote_topics={},
        tasks=dict.fromkeys(range(tasks), ()),
        task_count=tasks,
    )


@dataclass(slots=True)
class NoopConductor:
    """Copies nothing. Implements `engine.driver.conductor_api`; any thread may call it."""

    job: CopyJob
    hold_tasks: bool = False
    """Whether tasks stay until their epoch ends."""
    misses_receipts: bool = False
    """Whether the driver writes a receipt, of nothing, for each epoch."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each method was called, and each type of message received."""
    _senders: dict[Hello, Callable[[ControlMessage], None]] = field(default_factory=dict)
    _draining: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """No-op."""

    def on_task_joined(self, hello: Hello, send: Callable[[ControlMessage], None]) -> None:
        """Welcome the task, and drain it unless tasks are held."""
        with self._lock:
            self.counts["joined"] += 1
            self._senders[hello] = send
            send(Welcome(settings=self.job.settings.to_json()))
            if self._draining or not self.hold_tasks:
                send(Drain())

    def on_task_message(self, hello: Hello, message: ControlMessage) -> None:
        """Count the message; forget a task that is done."""
        with self._lock:
            self.counts[message.type] += 1
            if isinstance(message, TaskDone):
                self._senders.pop(hello, None)

    def on_task_left(self, hello: Hello) -> None:
        """Forget the task."""
        with self._lock:
            self.counts["left"] += 1
            self._senders.pop(hello, None)

    def end_epoch(self) -> None:
        """Drain all connected tasks."""
        with self._lock:
            self.counts["end_epoch"] += 1
            for send in self._senders.values():
                send(Drain())

    def drain_tasks(self, tasks: Collection[int]) -> None:
        """Drain the connected attempts of these tasks."""
        with self._lock:
            self.counts["drain_tasks"] += 1
            for hello, send in self._senders.items():
                if hello.task in tasks:
                    send(Drain())

    def drain(self) -> None:
        """Drain all connected tasks, and every task that joins later."""
        self._draining = True
        self.end_epoch()

    def is_drained(self) -> bool:
        """Whether `drain` was called and no task is left."""
        with self._lock:
            return self._draining and not self._senders

    def renew_membership(self, valid_until: float, *, is_alone: bool) -> None:
        """Nothing is shared."""

    def set_rate(self, bytes_per_s: int) -> None:
        """Keep the rate in the counts; there is nothing to limit."""
        self.counts["rate"] = bytes_per_s

    def replan(self, job: CopyJob) -> None:
        """Keep the job."""
        with self._lock:
            self.counts["replan"] += 1
            self.job = job

    def snapshot(self) -> CopySnapshot:
        """The counts, in the place of the lane counts of a topic."""
        with self._lock:
            return CopySnapshot(lanes={_NAME: dict(self.counts)})

    def problems(self) -> Sequence[str]:
        """There are none."""
        return ()

    def close_epoch(self, epoch: int, returned: Collection[AttemptEpoch]) -> list[MissingReceipt]:
        """Return the missing receipt, if any. Keeps the number of the epoch in the counts."""
        self.counts["last_closed_epoch"] = epoch
        self.counts["returned"] += len(returned)
        return [_receipt_of_nothing(epoch)] if self.misses_receipts else []

    def failure(self) -> Exception | None:
        """None."""
        return None

    def cancel(self) -> None:
        """No-op."""

    def stop(self) -> None:
        """No-op."""


def _receipt_of_nothing(epoch: int) -> MissingReceipt:
    nothing = TopicPartition(_NAME, 0)
    return MissingReceipt(
        hello=Hello(task=0, attempt=0, host="", pid=0, epoch=epoch),
        started_ms=0,
        ended_ms=0,
        receipt=Receipt(source=nothing, target=nothing, source_first=-1, target_first=-1),
    )
