"""Sequence numbers of an idempotent producer: 31 bits, per partition, wrapping to 0.

The target offset decides the sequence, so the target broker does compare-and-append:

    target offset   anchor   anchor+1  ...  anchor + 2**31 - 1   anchor + 2**31
    sequence          0          1     ...       2**31 - 1             0

The anchor is the target offset at which the current producer epoch began on that partition: a new
epoch starts at 0.
"""

from __future__ import annotations

from typing import Final

SEQUENCE_COUNT: Final = 1 << 31
_MASK: Final = SEQUENCE_COUNT - 1


def sequence_at(target_offset: int, anchor: int) -> int:
    """The sequence of the record at a target offset."""
    if target_offset < anchor:
        raise ValueError(f"target offset {target_offset} lies before its anchor {anchor}")
    return (target_offset - anchor) & _MASK


def next_sequence(sequence: int, count: int) -> int:
    """The sequence of the batch after one of `count` records."""
    return (sequence + count) & _MASK


def last_sequence(sequence: int, count: int) -> int:
    """The sequence of the last record of a batch, which brokers report for a producer."""
    return (sequence + count - 1) & _MASK


def target_offset_of(sequence: int, anchor: int, near: int) -> int:
    """Return the target offset of a sequence that is nearest to `near`.

    Sequences repeat every 2**31 offsets, so `near` must be close: the next expected offset.
    """
    ahead = (sequence - sequence_at(near, anchor)) & _MASK
    return near + ahead - (SEQUENCE_COUNT if ahead >= SEQUENCE_COUNT // 2 else 0)
