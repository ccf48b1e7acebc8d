"""A parcel: one batch on its way, from the fetch that brought it to its acknowledgement.

Knows which source offsets it holds, where on the target it must land, and its bytes. The bytes are
a view into the frame they were fetched in; whoever makes a parcel holds that frame for it, and
`release` lets go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.batch.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.header import BatchHeader, BytesLike

OffsetSpan = tuple[int, int]
"""Consecutive source offsets, as (first, length)."""


@dataclass(slots=True, kw_only=True, eq=False)
class PendingBatch:
    """One batch that the target can take, with what it holds of the source."""

    header: BatchHeader
    batch: memoryview
    spans: tuple[OffsetSpan, ...]
    """The source offsets of its records, ascending; the lengths add up to its records."""
    next_source_offset: int
    """Where the source goes on after it."""
    release: Callable[[], None]
    expected: int = -1
    """The target offset it was sealed for."""
    buffers: tuple[BytesLike, ...] = ()
    ambiguous_sends: int = 0
    """Requests that held it and may have appended it: as long as any did, its fate is unknown."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether it may be on the target already."""
        return self.ambiguous_sends > 0

    @property
    def has_sequence(self) -> bool:
        """Whether it has a producer and a sequence."""
        return bool(self.buffers)

    @property
    def record_count(self) -> int:
        """How many records it holds."""
        return self.header.record_count

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return self.header.size

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp in it; what a broker forgets its producer by."""
        return self.header.max_timestamp

    def set_producer_state(self, producer: BatchProducer, sequence: int, expected: int) -> None:
        """Give it a producer, a sequence and the place where it must land."""
        self.buffers = forward_batch(self.header, self.batch, producer, sequence)
        self.expected = expected

    def reset_producer_state(self) -> None:
        """It was not appended, and will be sealed anew for another transaction."""
        assert not self.is_ambiguous
        self.buffers = ()

    def discard_bytes(self) -> None:
        """It is on the target: what is still needed is only what it held."""
        self.batch, self.buffers = memoryview(b""), ()

    def runs(self) -> list[OffsetRun]:
        """Where each of its records lies, once it is on the target."""
        runs, target = [], self.expected
        for first, length in self.spans:
            runs.append(OffsetRun(first, target, length))
            target += length
        assert target == self.expected + self.record_count
        return runs
