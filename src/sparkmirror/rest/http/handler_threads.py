"""Threads in which handlers block, so that the event loop never does.

The number of threads is bounded. A request that finds no free thread waits, and times out like the
others. A thread whose request has timed out keeps its permit until its handler returns, so a worker
that hangs cannot accumulate threads. The threads are daemons: a handler that never returns does not
keep the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

Result = TypeVar("Result")


class HandlerTimeout(Exception):
    """The handler did not finish in time. It may still be running."""


class HandlerThreads:
    """A bounded number of threads, one per running handler."""

    def __init__(self, max_threads: int, name: str) -> None:
        self._permits = asyncio.Semaphore(max_threads)
        self._name = name

    async def run(self, handler: Callable[[], Result], timeout_s: float) -> Result:
        """Return the handler's result, or raise its error. Raises HandlerTimeout."""
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                await self._permits.acquire()
                return await self._start_thread(handler)
        except TimeoutError:
            if limit.expired():
                raise HandlerTimeout from None
            raise

    def _start_thread(self, handler: Callable[[], Result]) -> asyncio.Future[Result]:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Result] = loop.create_future()

        def finish(set_outcome: Callable[[], None]) -> None:
            self._permits.release()
            if not outcome.done():
                set_outcome()

        def call() -> None:
            try:
                set_outcome = partial(outcome.set_result, handler())
            except BaseException as error:  # noqa: BLE001  raised again by `run`
                set_outcome = partial(outcome.set_exception, _future_error(error))
            with suppress(RuntimeError):  # the server has stopped and its loop is closed
                loop.call_soon_threadsafe(finish, set_outcome)

        try:
            threading.Thread(target=call, name=self._name, daemon=True).start()
        except BaseException:  # the operating system may refuse a thread
            self._permits.release()
            raise
        return outcome


def _future_error(error: BaseException) -> Exception:
    """Return an error that a future can hold.

    A future refuses StopIteration. SystemExit would end the event loop, CancelledError the request.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    failure = RuntimeError(f"The handler raised {error!r}")
    failure.__cause__ = error
    return failure
