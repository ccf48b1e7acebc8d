"""Sequence numbers of an idempotent producer: 31 bits, per partition, wrapping to 0.

A sequence follows from the target offset alone, which makes the target broker compare-and-append:

    target offset   anchor   anchor+1  ...  anchor + 2**31 - 1   anchor + 2**31
    sequence          0          1     ...       2**31 - 1             0

The anchor is the target offset at which the current producer epoch began on that partition: a new
epoch starts at 0. Knows no batch and no broker.
"""

from __future__ import annotations

SEQUENCE_COUNT = 1 << 31
_MASK = SEQUENCE_COUNT - 1


def sequence_at(target_offset: int, anchor: int) -> int:
    """Sequence of the record that is to lie at a target offset."""
    if target_offset < anchor:
        raise ValueError(f"target offset {target_offset} lies before its anchor {anchor}")
    return (target_offset - anchor) & _MASK


def next_sequence(sequence: int, count: int) -> int:
    """Sequence of the batch that follows one of `count` records."""
    return (sequence + count) & _MASK


def last_sequence(sequence: int, count: int) -> int:
    """Sequence of the last record of a batch: what the broker reports of a producer."""
    return (sequence + count - 1) & _MASK


def target_offset_of(sequence: int, anchor: int, near: int) -> int:
    """Find the target offset that a sequence stands for, as the one nearest to `near`.

    Sequences repeat every 2**31 offsets, so the broker's word on its last sequence needs an offset
    known to be close: the next one expected.
    """
    ahead = (sequence - sequence_at(near, anchor)) & _MASK
    return near + ahead - (SEQUENCE_COUNT if ahead >= SEQUENCE_COUNT // 2 else 0)
