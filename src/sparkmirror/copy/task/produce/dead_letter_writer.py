"""Writes dead letters, and lets their partitions go on when the target has them.

One write at a time, in the background, with letters of all partitions that wait. A queue sends
nothing behind a letter that is not acknowledged (`partition_queue`), so a write that takes long
delays only partitions with letters.

    acknowledged   the partitions go on
    failed for now (the target cannot be reached, the topic is missing): all of it is tried again
                   with growing pauses, and the partitions show why
    refused        (a letter that is too large): each partition is written alone from then on, with
                   half as many letters after each refusal, and with more after a success. The
                   partition of a letter that is refused alone is held with the reason
    no right       all partitions of the write are held with the reason

A lease that ends drops its letters: its next owner reads those records again. If they were being
written, the letters come twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Protocol

from sparkmirror.backoff import Backoff
from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.dead_letter import DeadLetter
from sparkmirror.copy.task.produce.dead_letter_appender import AddressedDeadLetter
from sparkmirror.copy.task.produce.transaction_manager import BackgroundExecutor
from sparkmirror.errors import MirrorError, NotAuthorized, TopicMissing
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

MAX_WRITE_BYTES = 4 << 20
MAX_WRITE_LETTERS = 10_000

Write = Sequence[tuple[LeasedPartition, Sequence[DeadLetter]]]


class DeadLetterAppenderApi(Protocol):
    """Appends letters (`dead_letter_appender`)."""

    @property
    def retry_error(self) -> str:
        """Why the running call is tried again; empty if it is not."""
        ...

    def append(self, letters: Sequence[AddressedDeadLetter], *, is_idempotent: bool) -> None:
        """Append letters. Blocks."""
        ...

    def close(self, *, is_idle: bool) -> None:
        """Close the connections; end a call that is under way soon."""
        ...


class DeadLetterWriter:
    """Writes the letters of a task. Belongs to its thread."""

    def __init__(
        self,
        loop: BackgroundExecutor,
        appender: DeadLetterAppenderApi,
        topic: str,
        on_acknowledged: Callable[[LeasedPartition], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Call `on_acknowledged` for each partition that may send again."""
        self._loop = loop
        self._appender = appender
        self._topic = topic
        self._on_acknowledged = on_acknowledged
        self._clock = clock
        self._waiting: dict[LeasedPartition, None] = {}
        self._is_writing = False
        self._limits: dict[TopicPartition, int] = {}
        """How many letters a write has at most, of partitions whose last write was refused."""
        self._backoff = Backoff(max_s=2.0)
        self._retry_at = 0.0

    @property
    def next_turn_at(self) -> float:
        """When a write is tried again although no event arrives; infinity if none is."""
        return self._retry_at if self._waiting and not self._is_writing else float("inf")

    def add(self, partition: LeasedPartition) -> None:
        """A conversion may have left letters in the queue of a partition."""
        if partition.queue.dead_letters:
            self._waiting[partition] = None

    def remove(self, partition: LeasedPartition) -> None:
        """Forget a partition whose lease is returned."""
        self._waiting.pop(partition, None)

    def close(self) -> None:
        """End a write that is under way, and close the connections."""
        self._appender.close(is_idle=not self._is_writing)

    def poll(self, now: float) -> None:
        """Start the next write, if there are letters and none is under way."""
        if self._is_writing:
            self._show(self._appender.retry_error)
        elif self._waiting and now >= self._retry_at:
            self._start_write()

    def _start_write(self) -> None:
        for partition in [one for one in self._waiting if not one.queue.dead_letters]:
            del self._waiting[partition]
        if not self._waiting:
            return
        write = self._next_write()
        addressed = [
            AddressedDeadLetter(partition.source.partition, letter.record, letter.size)
            for partition, letters in write
            for letter in letters
        ]
        for partition, letters in write:
            _count(partition, FailureCounts(dead_letter_requests=len(letters)))
        self._is_writing = True
        is_idempotent = write[0][0].queue.lease.is_idempotent
        self._loop.run_in_executor(
            partial(self._appender.append, addressed, is_idempotent=is_idempotent),
            lambda _: self._on_written(write),
            partial(self._on_error, write),
        )

    def _next_write(self) -> Write:
        """Return the letters of the next write: of all partitions, or of a limited one alone."""
        first = next(iter(self._waiting))
        if limit := self._limits.get(first.source):
            return [(first, list(islice(first.queue.dead_letters, limit)))]
        write: list[tuple[LeasedPartition, Sequence[DeadLetter]]] = []
        letters_left, bytes_left = MAX_WRITE_LETTERS, MAX_WRITE_BYTES
        for partition in self._waiting:
            is_like_first = (
                partition.queue.lease.is_idempotent is first.queue.lease.is_idempotent
                and partition.source not in self._limits
            )
            taken: list[DeadLetter] = []
            for letter in partition.queue.dead_letters if is_like_first else ():
                if letters_left <= 0 or bytes_left <= 0:
                    break
                taken.append(letter)
                letters_left -= 1
                bytes_left -= letter.size
            if taken:
                write.append((partition, taken))
        return write

    def _on_written(self, write: Write) -> None:
        self._is_writing, self._retry_at = False, 0.0
        self._backoff.reset()
        self._show("")
        for partition, letters in write:
            partition.queue.acknowledge_dead_letters(letters)
            _count(partition, FailureCounts(dead_letters=len(letters)))
            self._on_acknowledged(partition)
            self._raise_limit(partition)
            if partition in self._waiting:  # the others have their turn before its next letters
                del self._waiting[partition]
                self.add(partition)

    def _raise_limit(self, partition: LeasedPartition) -> None:
        limit = self._limits.pop(partition.source, MAX_WRITE_LETTERS)
        if 2 * limit < MAX_WRITE_LETTERS:
            self._limits[partition.source] = 2 * limit

    def _on_error(self, write: Write, error: MirrorError) -> None:
        self._is_writing = False
        for partition, letters in write:
            _count(partition, FailureCounts(dead_letter_failures=len(letters)))
        if error.retriable or isinstance(error, TopicMissing):
            self._retry_at = self._clock() + self._backoff.next_delay_s()
            self._show(str(error))
        else:
            self._on_refused(write, error)

    def _on_refused(self, write: Write, error: MirrorError) -> None:
        """Find the letter that is refused, or hold its partition."""
        for partition, letters in write:
            is_alone = len(write) == 1
            limit = max(len(letters) // 2, 1) if is_alone else len(letters)
            if isinstance(error, NotAuthorized):
                self._hold(partition, letters[0], error)
                continue
            self._limits[partition.source] = limit
            if is_alone and len(letters) == 1:
                self._hold(partition, letters[0], error)
            else:
                log.info(
                    "%s: %s refuses dead letters, next it gets %d of them alone: %s",
                    partition.source, self._topic, limit, error,
                )  # fmt: skip

    def _hold(self, partition: LeasedPartition, letter: DeadLetter, error: MirrorError) -> None:
        """End the lease before the record whose letter is refused."""
        self._waiting.pop(partition, None)
        if letter not in partition.queue.dead_letters:
            return
        reason = LeaseEndReason.REFUSED
        if isinstance(error, NotAuthorized):
            reason = LeaseEndReason.NOT_AUTHORIZED
        partition.queue.drop_held()
        partition.end_after_queue(
            reason,
            f"the record at offset {letter.source_offset} failed in a transformation, and its dead"
            f" letter cannot be written to {self._topic}: target: {error}",
        )

    def _show(self, error: str) -> None:
        """Show why partitions wait for their letters, or no more."""
        reason = f"dead letters for {self._topic}: target: {error}" if error else ""
        for partition in self._waiting:
            if partition.dead_letter_error != reason:
                partition.dead_letter_error = reason
                partition.mark_changed()


def _count(partition: LeasedPartition, counts: FailureCounts) -> None:
    partition.failures = partition.failures.plus(counts)
    partition.mark_changed()
