"""When the next fetch from a broker waits, so that it finds several records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.task.fetch_pause import LARGE_ANSWER_BYTES, PAUSE_S, FetchPause

SOON_S = PAUSE_S / 5


def test_a_record_that_comes_alone_is_followed_by_a_fetch_at_once() -> None:
    pause = FetchPause()
    pause.on_answer(sent_at=1.0, now=10.0, record_bytes=100)
    assert pause.until <= 10.0
    pause.on_answer(sent_at=10.0, now=10.0 + 2 * PAUSE_S, record_bytes=100)
    assert pause.until <= 10.0 + 2 * PAUSE_S


def test_the_second_of_two_close_answers_begins_a_pause() -> None:
    pause = FetchPause()
    pause.on_answer(sent_at=1.0, now=10.0, record_bytes=100)
    pause.on_answer(sent_at=10.0, now=10.0 + SOON_S, record_bytes=100)
    assert pause.until == pytest.approx(10.0 + SOON_S + PAUSE_S)


def pausing_at(now: float) -> FetchPause:
    pause = FetchPause()
    pause.on_answer(sent_at=0.0, now=now - SOON_S, record_bytes=100)
    pause.on_answer(sent_at=now - SOON_S, now=now, record_bytes=100)
    assert pause.until > now
    return pause


def test_pauses_follow_each_other_while_a_fetch_finds_records_at_once() -> None:
    pause = pausing_at(10.0)
    now = 10.0
    for _ in range(5):
        sent_at = pause.until
        now = sent_at + SOON_S
        pause.on_answer(sent_at, now, record_bytes=300)
        assert pause.until == pytest.approx(now + PAUSE_S)


def test_a_fetch_that_waits_longer_than_a_pause_ends_the_pauses() -> None:
    pause = pausing_at(10.0)
    now = pause.until + 2 * PAUSE_S
    pause.on_answer(pause.until, now, record_bytes=100)
    assert pause.until <= now


@pytest.mark.parametrize("record_bytes", [0, LARGE_ANSWER_BYTES])
def test_neither_an_empty_nor_a_large_answer_is_followed_by_a_pause(record_bytes: int) -> None:
    pause = pausing_at(10.0)
    now = pause.until + SOON_S
    pause.on_answer(pause.until, now, record_bytes)
    assert pause.until <= now
    assert pause.is_catching_up == (record_bytes > 0)


@given(
    st.lists(
        st.tuples(st.floats(min_value=0, max_value=0.02), st.integers(0, 2 * LARGE_ANSWER_BYTES)),
        max_size=30,
    )
)
def test_a_pause_never_lasts_longer_than_its_limit(answers: list[tuple[float, int]]) -> None:
    pause, now = FetchPause(), 100.0
    for waited_s, record_bytes in answers:
        sent_at = max(now, pause.until)
        now = sent_at + waited_s
        pause.on_answer(sent_at, now, record_bytes)
        assert pause.until <= now + PAUSE_S
