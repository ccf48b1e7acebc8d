"""When the next fetch from a broker lets records collect, at the broker or before it is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.task.fetch_wait import (
    COLLECT_S,
    LARGE_ANSWER_BYTES,
    MAX_PARTITIONS_AT_BROKER,
    PAUSE_S,
    FetchWait,
)

RECORD = 250
INTERVAL_S = 0.001
FEW, MANY = MAX_PARTITIONS_AT_BROKER, MAX_PARTITIONS_AT_BROKER + 1


def collecting_at(now: float, partitions: int) -> FetchWait:
    """Return the state after two records, the second one an interval after the first."""
    wait = FetchWait()
    wait.on_answer(now - INTERVAL_S, RECORD, partitions)
    assert not wait.is_collecting
    wait.on_answer(now, RECORD, partitions)
    return wait


def test_a_record_that_comes_alone_is_followed_by_a_fetch_at_once() -> None:
    wait, now = FetchWait(), 10.0
    for _ in range(3):
        now += 2 * COLLECT_S
        wait.on_answer(now, RECORD, FEW)
        assert wait.min_bytes(FEW) == 1
        assert wait.paused_until <= now


def test_the_second_of_two_close_answers_lets_records_collect() -> None:
    assert collecting_at(10.0, FEW).min_bytes(FEW) > RECORD
    assert collecting_at(10.0, FEW).paused_until <= 10.0
    assert collecting_at(10.0, MANY).min_bytes(MANY) == 1
    assert collecting_at(10.0, MANY).paused_until == pytest.approx(10.0 + PAUSE_S)


def test_a_fetch_waits_for_the_records_of_3_ms() -> None:
    wait, now = collecting_at(10.0, FEW), 10.0
    for _ in range(20):
        records = -(-wait.min_bytes(FEW) // RECORD)
        assert records == 3
        now += records * INTERVAL_S
        wait.on_answer(now, records * RECORD, FEW)


def test_a_fetch_waits_for_more_records_when_they_come_faster() -> None:
    wait, now = collecting_at(10.0, FEW), 10.0
    for _ in range(20):
        now += 0.004
        wait.on_answer(now, 40 * RECORD, FEW)
    assert wait.min_bytes(FEW) == pytest.approx(30 * RECORD, rel=0.1)


def test_records_that_come_at_less_than_half_the_rate_collect_no_longer() -> None:
    wait = collecting_at(10.0, FEW)
    wait.on_answer(10.004, 3 * RECORD, FEW)
    assert wait.is_collecting
    wait.on_answer(10.008, RECORD, FEW)
    assert wait.min_bytes(FEW) == 1


@pytest.mark.parametrize("partitions", [FEW, MANY])
def test_an_answer_is_due_while_a_fetch_is_open_or_paused(partitions: int) -> None:
    wait = collecting_at(10.0, partitions)
    assert wait.is_answer_due(10.0) is (partitions == MANY)
    assert not wait.is_answer_due(10.0 + PAUSE_S)
    wait.is_fetch_open = True
    assert wait.is_answer_due(11.0)
    wait.on_answer(11.0, RECORD, partitions)
    assert not wait.is_answer_due(11.0), "no records are collected for the next one"


@pytest.mark.parametrize("record_bytes", [0, LARGE_ANSWER_BYTES])
@pytest.mark.parametrize("partitions", [FEW, MANY])
def test_neither_an_empty_nor_a_large_answer_lets_records_collect(
    record_bytes: int, partitions: int
) -> None:
    wait = collecting_at(10.0, partitions)
    wait.on_answer(10.0 + INTERVAL_S, record_bytes, partitions)
    assert wait.min_bytes(partitions) == 1
    assert wait.paused_until <= 10.0
    assert wait.is_catching_up == (record_bytes > 0)


@given(
    st.lists(
        st.tuples(st.floats(min_value=0, max_value=0.02), st.integers(0, 2 * LARGE_ANSWER_BYTES)),
        max_size=30,
    ),
    st.sampled_from([FEW, MANY]),
)
def test_a_pause_and_the_wanted_bytes_have_limits(
    answers: list[tuple[float, int]], partitions: int
) -> None:
    wait, now = FetchWait(), 100.0
    for waited_s, record_bytes in answers:
        now = max(now, wait.paused_until) + waited_s
        wait.on_answer(now, record_bytes, partitions)
        assert wait.paused_until <= now + PAUSE_S
        assert 1 <= wait.min_bytes(partitions) <= LARGE_ANSWER_BYTES
        assert not (wait.paused_until > now and wait.min_bytes(partitions) > 1), "one of the two"
