"""Calls in the loop's thread, from this thread and from others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from sparkmirror.copy.event_loop import EventLoop

LONG_S = 50.0


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


def test_a_call_from_another_thread_ends_the_wait(loop: EventLoop) -> None:
    called: list[str] = []
    loop.run_once(0)
    caller = threading.Timer(0.05, lambda: loop.call_soon(lambda: called.append("call")))
    caller.start()
    assert loop.run_once(LONG_S) == 1
    assert called == ["call"]
    caller.join()


def test_a_call_from_the_loops_own_thread_is_made_without_a_wait(loop: EventLoop) -> None:
    called: list[str] = []
    loop.run_once(0)
    loop.call_soon(lambda: loop.call_soon(lambda: called.append("second")))
    begun = time.monotonic()
    assert loop.run_once(LONG_S) == 2
    assert time.monotonic() - begun < LONG_S / 2
    assert called == ["second"]
    assert loop.run_once(0) == 0, "no wake-up is left"


def test_a_loop_that_moves_to_another_thread_is_woken_by_the_first_one(loop: EventLoop) -> None:
    handled: list[int] = []
    loop.run_once(0)
    mover = threading.Thread(target=lambda: handled.append(loop.run_once(LONG_S)))
    mover.start()
    time.sleep(0.05)  # the other thread waits by then; if not, it sees the call before it waits
    loop.call_soon(lambda: None)
    mover.join(LONG_S / 2)
    assert handled == [1]
