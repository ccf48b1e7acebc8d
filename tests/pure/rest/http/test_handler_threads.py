"""Handler threads return the handler's result or error, and their number is bounded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sparkmirror.rest.http.handler_threads import HandlerThreads, HandlerTimeout
from tests.support.waiting import wait_until


def run(handler: Callable[[], Any], timeout_s: float = 50.0) -> Any:
    async def once() -> Any:
        return await HandlerThreads(1, "test").run(handler, timeout_s)

    return asyncio.run(once())


def fail(error: BaseException) -> None:
    raise error


def test_run_returns_the_result() -> None:
    assert run(lambda: 42) == 42


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("the handler's own")])
def test_run_raises_the_error_of_the_handler(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        run(lambda: fail(error))
    assert caught.value is error


def test_a_handler_that_takes_too_long_times_out() -> None:
    released = threading.Event()
    with pytest.raises(HandlerTimeout):
        run(lambda: released.wait(50), timeout_s=0.05)
    released.set()


def test_a_timed_out_handler_keeps_its_thread_until_it_returns() -> None:
    released = threading.Event()
    started: list[int] = []

    def handler() -> int:
        started.append(1)
        released.wait(50)
        return 1

    async def run_many() -> int:
        threads = HandlerThreads(2, "test")
        outcomes = await asyncio.gather(
            *(threads.run(handler, 0.1) for _ in range(6)), return_exceptions=True
        )
        assert [type(each) for each in outcomes] == [HandlerTimeout] * 6
        while len(started) < 2:  # a thread may start after its request has timed out
            await asyncio.sleep(0.01)
        assert len(started) == 2
        released.set()
        return await threads.run(handler, 50.0)

    assert asyncio.run(run_many()) == 1


def test_handler_threads_are_daemons() -> None:
    released = threading.Event()
    daemon_flags: list[bool] = []

    def handler() -> None:
        daemon_flags.append(threading.current_thread().daemon)
        released.wait(50)

    with pytest.raises(HandlerTimeout):
        run(handler, timeout_s=0.1)
    wait_until(lambda: daemon_flags == [True], "the handler to start in a daemon thread")
    released.set()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration()])
def test_a_handler_that_raises_no_ordinary_error_fails_and_frees_its_thread(
    error: BaseException,
) -> None:
    async def run_twice() -> int:
        threads = HandlerThreads(1, "test")
        with pytest.raises(RuntimeError, match=f"raised {type(error).__name__}") as caught:
            await threads.run(lambda: fail(error), 50.0)
        assert caught.value.__cause__ is error
        return await threads.run(lambda: 42, 50.0)

    assert asyncio.run(run_twice()) == 42


def test_a_thread_that_cannot_start_frees_its_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def run_twice() -> int:
        threads = HandlerThreads(1, "test")
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start"):
                await threads.run(lambda: 1, 50.0)
        return await threads.run(lambda: 42, 5.0)

    assert asyncio.run(run_twice()) == 42
