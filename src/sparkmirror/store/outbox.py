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

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.store.log import Log
from sparkmirror.wire.backoff import Backoff

log = logging.getLogger(__name__)

LONGEST_PAUSE_S = 5.0
STOP_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A record to be written, unless it is not wanted any more when its turn comes."""

    record: RecordBytes
    wanted: Callable[[], bool]


class Post(Protocol):
    """Takes letters and sees to it that they are written."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def send(self, letter: Letter) -> None: ...


class Outbox:
    """The background writer of one log. A `Post`."""

    def __init__(self, topic: Log) -> None:
        self._log = topic
        self._changed = threading.Condition()
        self._letters: list[Letter] = []
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
            self._thread.join(STOP_S)

    def send(self, letter: Letter) -> None:
        """Hand in a letter; returns at once."""
        with self._changed:
            self._letters.append(letter)
            self._changed.notify_all()

    def _run(self) -> None:
        backoff = Backoff(longest_s=LONGEST_PAUSE_S)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._letters or self._stopping)
                letters, self._letters = self._letters, []
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
                self._letters = _newest([*waiting, *self._letters])
                self._changed.wait_for(lambda: self._stopping, timeout=backoff.pause_s())

    def _write(self, letters: list[Letter]) -> list[Letter]:
        """Append letters; return those to be tried again."""
        letters = [letter for letter in letters if letter.wanted()]
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


def _newest(letters: Iterable[Letter]) -> list[Letter]:
    """Of each key the last letter, in their order."""
    last = {letter.record.key: letter for letter in letters}
    return list(last.values())
