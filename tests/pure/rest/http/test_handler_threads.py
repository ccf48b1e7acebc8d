"""Work in threads: its result or its error comes back, and never more of it than allowed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sparkmirror.rest.http.handler_threads import HandlerThreads, HandlerTimeout
from tests.support.waiting import wait_until


def run(work: Callable[[], Any], within_s: float = 50.0) -> Any:
    async def once() -> Any:
        return await HandlerThreads(1, "test").run(work, within_s)

    return asyncio.run(once())


def fail(error: Exception) -> None:
    raise error


def test_the_result_comes_back() -> None:
    assert run(lambda: 42) == 42


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("the work's own")])
def test_the_works_own_error_comes_back(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        run(lambda: fail(error))
    assert caught.value is error


def test_what_takes_too_long_is_given_up() -> None:
    hold = threading.Event()
    with pytest.raises(HandlerTimeout):
        run(lambda: hold.wait(50), within_s=0.05)
    hold.set()


def test_a_place_is_free_only_when_its_work_has_ended() -> None:
    hold = threading.Event()
    begun: list[int] = []

    def work() -> int:
        begun.append(1)
        hold.wait(50)
        return 1

    async def crowd() -> int:
        threads = HandlerThreads(2, "test")
        given_up = await asyncio.gather(
            *(threads.run(work, 0.1) for _ in range(6)), return_exceptions=True
        )
        assert [type(each) for each in given_up] == [HandlerTimeout] * 6
        while len(begun) < 2:  # a thread may be slower than whoever waits for it
            await asyncio.sleep(0.01)
        assert len(begun) == 2
        hold.set()
        return await threads.run(work, 50.0)

    assert asyncio.run(crowd()) == 1


def test_the_process_may_end_while_work_hangs() -> None:
    hold = threading.Event()
    kinds: list[bool] = []

    def work() -> None:
        kinds.append(threading.current_thread().daemon)
        hold.wait(50)

    with pytest.raises(HandlerTimeout):
        run(work, within_s=0.1)
    wait_until(lambda: kinds == [True], "the work to begin as a daemon")
    hold.set()
