"""Turns of starts: a few at a time, and none keeps others waiting for long."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest

from sparkmirror.connect import start_turns
from sparkmirror.connect.start_turns import MAX_TURNS, StartTurns
from tests.support.connect.in_memory_herder import poll_until


def test_only_a_few_have_their_turn_at_the_same_time() -> None:
    turns, lock = StartTurns(lambda: 0.0), threading.Lock()
    running, most = 0, 0

    def start(_: int) -> None:
        nonlocal running, most
        with turns.turn():
            with lock:
                running += 1
                most = max(most, running)
            with lock:
                running -= 1

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(start, range(200)))
    assert 1 <= most <= MAX_TURNS


def test_a_turn_ends_with_an_error_too() -> None:
    turns = StartTurns(lambda: 0.0)
    for _ in range(MAX_TURNS + 1):
        with pytest.raises(ValueError, match="broken"), turns.turn():
            raise ValueError("broken")


def test_a_start_that_hangs_keeps_the_others_waiting_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_turns, "MAX_TURN_S", 0.1)
    turns, ends = StartTurns(), threading.Event()
    begun: list[int] = []

    def hang(number: int) -> None:
        with turns.turn():
            begun.append(number)
            ends.wait(30)

    with ThreadPoolExecutor(2 * MAX_TURNS) as pool:
        try:
            for number in range(2 * MAX_TURNS):
                pool.submit(hang, number)
            poll_until(lambda: len(begun) == 2 * MAX_TURNS, "all turns")
        finally:
            ends.set()


def has_waiting(turns: StartTurns, count: int) -> bool:
    return len(turns._queue) == count


def test_starts_have_their_turns_in_the_order_of_their_calls() -> None:
    turns = StartTurns(lambda: 0.0)
    begun: list[int] = []

    def start(number: int) -> None:
        with turns.turn():
            begun.append(number)

    with ThreadPoolExecutor(20) as pool, ExitStack() as taken:
        for _ in range(MAX_TURNS):
            taken.enter_context(turns.turn())
        for number in range(20):
            pool.submit(start, number)
            poll_until(partial(has_waiting, turns, number + 1), "the queue")
        assert begun == []
        taken.close()
        poll_until(lambda: len(begun) == 20, "all turns")
    assert sorted(begun) == list(range(20))
    assert all(abs(place - number) <= MAX_TURNS for place, number in enumerate(begun))


def test_a_start_that_waits_says_how_many_come_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(start_turns, "LOG_INTERVAL_S", 0.01)
    caplog.set_level("INFO")
    turns = StartTurns(lambda: 0.0)

    def start() -> None:
        with turns.turn():
            pass

    with ThreadPoolExecutor(2) as pool, ExitStack() as taken:
        for _ in range(MAX_TURNS):
            taken.enter_context(turns.turn())
        for number in range(2):
            pool.submit(start)
            poll_until(partial(has_waiting, turns, number + 1), "the queue")
        poll_until(lambda: "waits for its turn: 1 other starts" in caplog.text, "the log line")
        taken.close()
