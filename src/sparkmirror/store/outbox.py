"""Writing in the background: what is handed in is appended in order by a thread of its own.

While brokers are away it is kept and tried again; of what waits then, only the last of each key is
kept, since the last one is what counts. What brokers will not take is dropped, with a line in the
log. A letter may say, each time before it is sent, that it is not wanted any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.compacted_log import CompactedLog

log = logging.getLogger(__name__)

MAX_RETRY_DELAY_S = 5.0
STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRecord:
    """A record to be written, unless it is not wanted any more when its turn comes."""

    record: RecordBytes
    should_write: Callable[[], bool]


class RecordSink(Protocol):
    """Takes letters and sees to it that they are written."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def send(self, letter: QueuedRecord) -> None: ...


class Outbox:
    """The background writer of one log. A `Post`."""

    def __init__(self, topic: CompactedLog) -> None:
        self._log = topic
        self._changed = threading.Condition()
        self._queue: list[QueuedRecord] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Try once more to write what waits, then end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)

    def send(self, letter: QueuedRecord) -> None:
        """Hand in a letter; returns at once."""
        with self._changed:
            self._queue.append(letter)
            self._changed.notify_all()

    def _run(self) -> None:
        backoff = Backoff(max_s=MAX_RETRY_DELAY_S)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping)
                letters, self._queue = self._queue, []
                last_time = self._stopping
            waiting = self._write(letters)
            if last_time:
                if waiting:
                    log.warning("%d status updates could not be written any more", len(waiting))
                return
            with self._changed:
                if not waiting:
                    backoff.reset()
                    continue
                self._queue = _newest_per_key([*waiting, *self._queue])
                self._changed.wait_for(lambda: self._stopping, timeout=backoff.next_delay_s())

    def _write(self, letters: list[QueuedRecord]) -> list[QueuedRecord]:
        """Append letters; return those to be tried again."""
        letters = [letter for letter in letters if letter.should_write()]
        if not letters:
            return []
        try:
            self._log.append([letter.record for letter in letters])
        except ClusterError as error:
            if error.retriable:
                log.warning("Status updates cannot be written just now, trying again: %s", error)
                return letters
            if len(letters) > 1:  # one of them is to blame, the others can go
                return [again for letter in letters for again in self._write([letter])]
            log.error("Failed to write the status update %r: %s", letters[0].record.key, error)
        return []


def _newest_per_key(letters: Iterable[QueuedRecord]) -> list[QueuedRecord]:
    """Of each key the last letter, in their order."""
    last = {letter.record.key: letter for letter in letters}
    return list(last.values())
