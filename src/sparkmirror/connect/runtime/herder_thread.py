"""The herder's thread: it owns all state and does one errand after the other.

    any thread ── post, later ──▶ queue ──▶ the thread
    any thread ── ask ──▶ queue ──▶ the thread ── answer ──▶ the asking thread

Whoever asks is answered within a time, or told what the thread is busy with. An errand may answer
later than it ends (`ask_for`): the answer then comes from a later errand.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from itertools import count
from typing import TypeAlias, TypeVar

from sparkmirror.connect.runtime.tick_stage import TickThreadStage
from sparkmirror.errors import RequestFailed

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
HerderAction: TypeAlias = Callable[[], None]


class HerderThread:
    """One thread and what waits for it. Errands never run at the same time."""

    def __init__(self, name: str, stages: TickThreadStage) -> None:
        self._tick_stage = stages
        self._condition = threading.Condition()
        self._sequence = count()
        self._queue: list[tuple[float, int, HerderAction]] = []
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin with what has been posted so far."""
        self._thread.start()

    def submit(self, errand: HerderAction) -> None:
        """Have it done after all that was posted before."""
        self.schedule(0.0, errand)

    def schedule(self, pause_s: float, errand: HerderAction) -> None:
        """Have it done after a pause. Lost if the thread is closed before."""
        with self._condition:
            due = time.monotonic() + pause_s  # taken inside the lock, so the order is that of calls
            heapq.heappush(self._queue, (due, next(self._sequence), errand))
            self._condition.notify()

    def call(self, question: Callable[[], Answer], within_s: float) -> Answer:
        """Have something found out or done, and wait for it."""

        def errand(answer: Future[Answer]) -> None:
            answer.set_result(question())

        return self.call_with_future(errand, within_s)

    def call_with_future(self, errand: Callable[[Future[Answer]], None], within_s: float) -> Answer:
        """Wait for an answer that the errand, or a later one, gives."""
        assert threading.current_thread() is not self._thread
        answer: Future[Answer] = Future()

        def run() -> None:
            if not answer.set_running_or_notify_cancel():
                return  # nobody waits any more, so it must not happen either
            try:
                errand(answer)
            except Exception as error:  # noqa: BLE001  it is raised where it was asked
                answer.set_exception(error)

        if self._is_closed:
            raise RequestFailed("The worker is shutting down.")
        self.submit(run)
        try:
            return answer.result(timeout=within_s)
        except TooLate:
            answer.cancel()
            raise RequestFailed(
                f"Request timed out. {self._tick_stage.summary()}".rstrip()
            ) from None

    def close(self, within_s: float) -> None:
        """End after the errand under way and all that are due."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        if self._thread.ident:
            self._thread.join(timeout=within_s)

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while (errand := self._await_due()) is not None:
            try:
                errand()
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
