"""The herder thread: owns the worker's state and runs one action after the other.

    any thread ── submit, schedule ──▶ queue ──▶ herder thread
    any thread ── call ──▶ queue ──▶ herder thread ── result ──▶ the calling thread

A call returns within its timeout or raises RequestFailed, which says what the thread is doing and
whether the action may still take effect. An action may complete its future after it returns
(`call_with_future`): a later action sets the result.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias, TypeVar

from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.errors import RequestError, RequestFailed
from sparkmirror.logging_context import ContextThread

log = logging.getLogger(__name__)

Result = TypeVar("Result")
HerderAction: TypeAlias = Callable[[], None]

CHECK_S = 0.05
"""How often a caller that waits looks for a refusal or a problem."""
NOT_MADE = "The change was not made."
MAY_TAKE_EFFECT = "The change may still take effect."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWatch:
    """What ends a call before its timeout. The calling thread asks."""

    get_refusal: Callable[[], RequestError | None] = lambda: None
    """Returns the error to raise at once while the action waits for its turn."""
    get_problem: Callable[[], str] = str
    """Returns the known problem of the worker. The error of a call that times out contains it."""
    short_timeout_s: float = float("inf")
    """The timeout until the action begins, and while the worker has a problem."""
    place: str = ""
    """Where the worker writes. The error of a call that times out contains it."""


NO_WATCH = CallWatch()


class HerderThread:
    """One thread and its queue of actions. Two actions never run at the same time."""

    def __init__(self, name: str, tick_stage: TickThreadStage) -> None:
        self._tick_stage = tick_stage
        self._condition = threading.Condition()
        self._sequence = count()
        self._queue: list[tuple[float, int, HerderAction]] = []
        self._is_closed = False
        self._running_since: float | None = None
        """When the running action was due."""
        self._thread = ContextThread(target=self._run, name=name)

    def start(self) -> None:
        """Start with the actions submitted so far."""
        self._thread.start()

    def is_current(self) -> bool:
        """Return whether the calling thread is the herder thread."""
        return threading.current_thread() is self._thread

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
        watch: CallWatch = NO_WATCH,
    ) -> Result:
        """Run a function on the herder thread and return its result. Blocks the caller.

        Raises what the function raises, the refusal of `watch`, or RequestFailed after the timeout.
        """

        def action(future: Future[Result]) -> None:
            future.set_result(function())

        return self.call_with_future(action, timeout_s, watch)

    def call_with_future(
        self,
        action: Callable[[Future[Result]], None],
        timeout_s: float,
        watch: CallWatch = NO_WATCH,
    ) -> Result:
        """Wait for the result that the action, or a later one, sets in the future."""
        assert threading.current_thread() is not self._thread
        future: Future[Result] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return  # the caller got an error, so the action must not run either
            try:
                action(future)
            except Exception as error:  # noqa: BLE001  it is raised in the calling thread
                future.set_exception(error)

        if self._is_closed:
            raise RequestFailed("The worker is shutting down.")
        self.submit(run)
        deadline, short_deadline = (
            time.monotonic() + limit_s for limit_s in (timeout_s, watch.short_timeout_s)
        )
        while not _await_done(future, min(CHECK_S, deadline - time.monotonic())):
            now, problem = time.monotonic(), watch.get_problem()
            is_short = bool(problem) or not future.running()
            if now >= deadline or (now >= short_deadline and is_short):
                effect = NOT_MADE if future.cancel() else MAY_TAKE_EFFECT
                if not future.done() or future.cancelled():
                    stage = self._tick_stage.summary()
                    cause = f"{problem.rstrip('.')}." if problem else ""
                    parts = ("Request timed out.", stage, watch.place, cause, effect)
                    raise RequestFailed(" ".join(filter(None, parts)))
            refusal = watch.get_refusal()
            if refusal is not None and future.cancel():
                raise refusal
        return future.result()

    def oldest_wait_s(self, since: float = float("-inf")) -> float:
        """Return for how long the oldest action that is due is not done; 0.0 if there is none.

        The time before `since`, a reading of the monotonic clock, does not count.
        """
        with self._condition:
            due = [entry[0] for entry in self._queue[:1]]
            if self._running_since is not None:
                due.append(self._running_since)
        return max(time.monotonic() - max(min(due), since), 0.0) if due else 0.0

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
            self._running_since = None

    def _await_due(self) -> HerderAction | None:
        with self._condition:
            while True:
                now = time.monotonic()
                due = self._queue[0][0] if self._queue else float("inf")
                if due <= now:
                    self._running_since = due
                    return heapq.heappop(self._queue)[2]
                if self._is_closed:
                    return None
                self._condition.wait(timeout=None if due == float("inf") else due - now)


def _await_done(future: Future[Result], timeout_s: float) -> bool:
    return bool(wait([future], max(timeout_s, 0.0)).done)
