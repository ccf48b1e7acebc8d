"""Writes records in the background: a thread appends them in the order in which they were queued.

While brokers are unavailable, or a right is missing, records stay in the queue and are retried. The
queue then keeps only the last record of each key, because that one wins in a compacted topic. A
record that brokers refuse for its content is dropped and logged. Before each attempt the thread
asks whether a record is still wanted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterError, RequestRefused
from sparkmirror.logging_context import ContextThread
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.kafka_based_log import CompactedLog

log = logging.getLogger(__name__)

MAX_RETRY_DELAY_S = 5.0
STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRecord:
    """A record to be written, if `should_write` is still true at that time."""

    record: RecordBytes
    should_write: Callable[[], bool]


class RecordSink(Protocol):
    """Writes queued records."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def send(self, queued: QueuedRecord) -> None: ...
    def problem(self) -> str: ...


class Outbox:
    """The background writer of one log. A `RecordSink`."""

    def __init__(self, compacted_log: CompactedLog) -> None:
        self._log = compacted_log
        self._changed = threading.Condition()
        self._queue: list[QueuedRecord] = []
        self._stopping = False
        self._problem = ""
        self._thread = ContextThread(target=self._run, name="outbox")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Try once to write the queued records, unless brokers are unavailable; end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)

    def send(self, queued: QueuedRecord) -> None:
        """Queue a record. Does not block."""
        with self._changed:
            self._queue.append(queued)
            self._changed.notify_all()

    def problem(self) -> str:
        """Return why queued records cannot be written now; empty if they can."""
        return self._problem

    def _run(self) -> None:
        backoff = Backoff(max_s=MAX_RETRY_DELAY_S)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping)
                batch, self._queue = self._queue, []
                last_attempt = self._stopping
            unwritten = batch if last_attempt and self._problem else self._write(batch)
            if last_attempt:
                if unwritten:
                    log.warning(
                        "Dropped %d status updates of topic %s at shutdown: %s",
                        len(unwritten), self._log.topic, self._problem,
                    )  # fmt: skip
                return
            with self._changed:
                if not unwritten:
                    backoff.reset()
                    continue
                self._queue = _newest_per_key([*unwritten, *self._queue])
                self._changed.wait_for(lambda: self._stopping, timeout=backoff.next_delay_s())

    def _write(self, batch: list[QueuedRecord]) -> list[QueuedRecord]:
        """Append records. Return those to be retried."""
        batch = [queued for queued in batch if queued.should_write()]
        if not batch:
            return []
        try:
            self._log.append([queued.record for queued in batch])
        except ClusterError as error:
            if not isinstance(error, RequestRefused):
                if str(error) != self._problem:
                    log.warning(
                        "Status updates cannot be written to topic %s, trying again: %s",
                        self._log.topic, error,
                    )  # fmt: skip
                self._problem = str(error)
                return batch
            if len(batch) > 1:  # one record is the cause; the others can be written alone
                return [failed for queued in batch for failed in self._write([queued])]
            log.error(
                "Dropped the status update %r of topic %s: %s",
                batch[0].record.key, self._log.topic, error,
            )  # fmt: skip
        self._problem = ""
        return []


def _newest_per_key(queue: Iterable[QueuedRecord]) -> list[QueuedRecord]:
    """Return the last record of each key, in the order in which the keys first occur."""
    newest = {queued.record.key: queued for queued in queue}
    return list(newest.values())
