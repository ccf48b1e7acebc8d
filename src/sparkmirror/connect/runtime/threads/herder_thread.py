"""The herder thread: owns the worker's state and runs one action after the other.

    any thread ── submit, schedule ──▶ queue ──▶ herder thread
    any thread ── call ──▶ queue ──▶ herder thread ── result ──▶ the calling thread

A call returns within its timeout or raises RequestFailed, which says what the thread is doing. An
action may complete its future after it returns (`call_with_future`): a later action sets the
result.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from itertools import count
from typing import TypeAlias, TypeVar

from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.errors import RequestFailed

log = logging.getLogger(__name__)

Result = TypeVar("Result")
HerderAction: TypeAlias = Callable[[], None]

PATIENCE_S = 9.0
"""How long a caller waits for its action while the worker has a problem."""
PROBLEM_CHECK_S = 1.0


class HerderThread:
    """One thread and its queue of actions. Two actions never run at the same time."""

    def __init__(self, name: str, tick_stage: TickThreadStage) -> None:
        self._tick_stage = tick_stage
        self._condition = threading.Condition()
        self._sequence = count()
        self._queue: list[tuple[float, int, HerderAction]] = []
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start with the actions submitted so far."""
        self._thread.start()

    def submit(self, action: HerderAction) -> None:
        """Run an action after all that were submitted before."""
        self.schedule(0.0, action)

    def schedule(self, delay_s: float, action: HerderAction) -> None:
        """Run an action after a delay. It is dropped if the thread is closed before."""
        with self._condition:
            due = (
                time.monotonic() + delay_s
            )  # read inside the lock: actions keep the order of calls
            heapq.heappush(self._queue, (due, next(self._sequence), action))
            self._condition.notify()

    def call(
        self,
        function: Callable[[], Result],
        timeout_s: float,
        get_problem: Callable[[], str] = lambda: "",
    ) -> Result:
        """Run a function on the herder thread and return its result. Blocks the caller.

        Raises what the function raises, or RequestFailed after the timeout; after PATIENCE_S if
        `get_problem` returns a problem of the worker then.
        """

        def action(future: Future[Result]) -> None:
            future.set_result(function())

        return self.call_with_future(action, timeout_s, get_problem)

    def call_with_future(
        self,
        action: Callable[[Future[Result]], None],
        timeout_s: float,
        get_problem: Callable[[], str] = lambda: "",
    ) -> Result:
        """Wait for the result that the action, or a later one, sets in the future."""
        assert threading.current_thread() is not self._thread
        future: Future[Result] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return  # the caller got a timeout, so the action must not run either
            try:
                action(future)
            except Exception as error:  # noqa: BLE001  it is raised in the calling thread
                future.set_exception(error)

        if self._is_closed:
            raise RequestFailed("The worker is shutting down.")
        self.submit(run)
        deadline = time.monotonic() + timeout_s
        patience_s = min(timeout_s, PATIENCE_S)
        while True:
            try:
                return future.result(timeout=patience_s)
            except FutureTimeout:
                problem = get_problem()
                patience_s = min(deadline - time.monotonic(), PROBLEM_CHECK_S)
                if not problem and patience_s > 0:
                    continue
                future.cancel()
                parts = ("Request timed out.", self._tick_stage.summary(), problem)
                raise RequestFailed(" ".join(filter(None, parts))) from None

    def close(self, timeout_s: float) -> None:
        """End the thread after the running action and all that are due; wait for it."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        if self._thread.ident:
            self._thread.join(timeout=timeout_s)

    # -- the herder thread -------------------------------------------------------------------------

    def _run(self) -> None:
        while (action := self._await_due()) is not None:
            try:
                action()
            except Exception:
                log.exception("Uncaught exception in herder work thread")

    def _await_due(self) -> HerderAction | None:
        with self._condition:
            while True:
                now = time.monotonic()
                due = self._queue[0][0] if self._queue else float("inf")
                if due <= now:
                    return heapq.heappop(self._queue)[2]
                if self._is_closed:
                    return None
                self._condition.wait(timeout=None if due == float("inf") else due - now)
