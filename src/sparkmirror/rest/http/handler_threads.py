"""Threads in which handlers wait for the worker, so that the server itself never waits.

At most so many at a time; who comes later queues, and gives up in time. A thread whose caller has
given up keeps its place until it ends: a worker that hangs cannot be made to pile up threads. They
are daemons, because a call that never returns must not keep the process from ending.
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
    """The work was not done in time. It may still be going on."""


class HandlerThreads:
    """A bounded number of threads, one for each call under way."""

    def __init__(self, most: int, name: str) -> None:
        self._permits = asyncio.Semaphore(most)
        self._name = name

    async def run(self, work: Callable[[], Result], within_s: float) -> Result:
        """Do the work in a thread and give its result, or raise what it raised; or TooLate."""
        limit = asyncio.timeout(within_s)
        try:
            async with limit:
                await self._permits.acquire()
                return await self._start_thread(work)
        except TimeoutError:
            if limit.expired():
                raise HandlerTimeout from None
            raise

    def _start_thread(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Result] = loop.create_future()

        def end(tell: Callable[[], None]) -> None:
            self._permits.release()
            if not outcome.done():
                tell()

        def call() -> None:
            try:
                tell = partial(outcome.set_result, work())
            except Exception as error:  # noqa: BLE001  handed to whoever waits
                tell = partial(outcome.set_exception, error)
            with suppress(RuntimeError):  # the server has ended: nobody waits any more
                loop.call_soon_threadsafe(end, tell)

        threading.Thread(target=call, name=self._name, daemon=True).start()
        return outcome
