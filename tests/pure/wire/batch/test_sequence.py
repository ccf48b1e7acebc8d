"""Sequence numbers have 31 bits, wrap to 0, and follow target offsets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.wire.batch.sequence import (
    SEQUENCE_COUNT,
    last_sequence,
    next_sequence,
    sequence_at,
    target_offset_of,
)

ANCHORS = st.integers(0, 1 << 40)
AHEAD = st.integers(0, 1 << 34)


def test_a_new_epoch_starts_at_0() -> None:
    assert sequence_at(700, anchor=700) == 0


def test_sequences_wrap_to_0() -> None:
    assert sequence_at(SEQUENCE_COUNT, anchor=0) == 0
    assert next_sequence(SEQUENCE_COUNT - 3, 3) == 0
    assert next_sequence(SEQUENCE_COUNT - 3, 5) == 2
    assert last_sequence(SEQUENCE_COUNT - 3, 3) == SEQUENCE_COUNT - 1
    assert last_sequence(SEQUENCE_COUNT - 3, 4) == 0


@settings(max_examples=40)
@given(anchor=ANCHORS, ahead=AHEAD, count=st.integers(1, 1 << 20))
def test_the_next_batch_follows_by_sequence_as_by_offset(
    anchor: int, ahead: int, count: int
) -> None:
    here = sequence_at(anchor + ahead, anchor)
    assert next_sequence(here, count) == sequence_at(anchor + ahead + count, anchor)
    assert next_sequence(last_sequence(here, count), 1) == next_sequence(here, count)


@settings(max_examples=40)
@given(anchor=ANCHORS, ahead=AHEAD, away=st.integers(-(1 << 29), 1 << 29))
def test_the_target_offset_is_computed_from_a_sequence(anchor: int, ahead: int, away: int) -> None:
    offset = anchor + ahead
    near = max(anchor, offset + away)
    assert target_offset_of(sequence_at(offset, anchor), anchor, near) == offset


def test_an_offset_before_its_anchor_is_refused() -> None:
    with pytest.raises(ValueError, match="before its anchor"):
        sequence_at(6, anchor=7)
