"""One record batch between its fetch from the source and its acknowledgement by the target.

A pending batch has the source offsets of its records, the target offset at which it must be
appended, and its bytes. The bytes are a view into the fetch response, or memory of their own.
The code that makes a pending batch keeps that memory for it; `release` gives it back.
"""

from __future__ import annotations

from builtins import memoryview
from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.batch.header import BatchHeader, BytesLike
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch

OffsetSpan = tuple[int, int]
"""Consecutive source offsets, as (first, length)."""


@dataclass(slots=True, kw_only=True, eq=False)
class PendingBatch:
    """A record batch that the target accepts, with the source offsets of its records."""

    header: BatchHeader
    batch: memoryview
    spans: tuple[OffsetSpan, ...]
    """The source offsets of its records, ascending. The lengths add up to its record count."""
    next_source_offset: int
    """The source offset that follows the batch."""
    release: Callable[[], None]
    expected: int = -1
    """The target offset at which the batch must be appended."""
    buffers: tuple[BytesLike, ...] = ()
    """What goes over the wire; empty until the batch has a producer and a sequence."""
    ambiguous_sends: int = 0
    """Requests that contained the batch and may have appended it."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether the target may already have the batch."""
        return self.ambiguous_sends > 0

    @property
    def has_sequence(self) -> bool:
        """Whether the batch has a producer and a sequence."""
        return bool(self.buffers)

    @property
    def record_count(self) -> int:
        """The number of records in the batch."""
        return self.header.record_count

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return self.header.size

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp in the batch. A broker expires the producer state by it."""
        return self.header.max_timestamp

    def set_producer_state(self, producer: BatchProducer, sequence: int, expected: int) -> None:
        """Set producer, sequence and expected target offset."""
        self.buffers = forward_batch(self.header, self.batch, producer, sequence)
        self.expected = expected

    def reset_producer_state(self) -> None:
        """Remove producer and sequence. Requires that the target does not have the batch."""
        assert not self.is_ambiguous
        self.buffers = ()

    def discard_bytes(self) -> None:
        """Drop the bytes of an acknowledged batch; offsets and counts stay."""
        self.batch, self.buffers = memoryview(b""), ()

    def runs(self) -> list[OffsetRun]:
        """Return source and target offsets of the records. Requires the acknowledged offset."""
        runs, target = [], self.expected
        for first, length in self.spans:
            runs.append(OffsetRun(first, target, length))
            target += length
        assert target == self.expected + self.record_count
        return runs
