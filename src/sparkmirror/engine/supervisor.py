"""The supervisor: keeps one assignment running, whatever becomes of the processes that run it.

    with Supervisor(assignment) as supervisor:
        for status in supervisor.statuses():
            ...
        supervisor.drain()

Starts the driver, listens to it, and starts another one after a pause when it, or its JVM, has
died. Never imports Spark. When this process dies the driver notices, drains and ends.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.order import Do, Order
from sparkmirror.engine.process import DriverProcess
from sparkmirror.engine.status import Phase, Status
from sparkmirror.errors import DriverLost, MirrorError
from sparkmirror.wire.backoff import Backoff

log = logging.getLogger(__name__)

DRIVER = "sparkmirror.engine.driver"
SILENCE_S = 60.0
"""A driver that says nothing for so long is taken for dead."""
DRAIN_WITHIN_S = 60.0
STOP_WITHIN_S = 20.0
STEADY_S = 60.0
"""A driver that ran so long was well: its end is not part of a series."""


class Supervisor:
    """Keeps one assignment running."""

    def __init__(
        self, assignment: Assignment, *, module: str = DRIVER, backoff: Backoff | None = None
    ) -> None:
        """`module` is what the driver process runs."""
        self._assignment = assignment
        self._module = module
        self._backoff = backoff or Backoff(first_s=1.0, longest_s=60.0)
        self._temporary = Path(tempfile.mkdtemp(prefix="sparkmirror-"))
        self._news = threading.Condition()
        self._status = Status(phase=Phase.STARTING, tasks=len(assignment.job.tasks))
        self._number = 0
        self._process: DriverProcess | None = None
        self._is_wanted = True
        self._is_over = False
        self._end_by = 0.0
        self._failure: MirrorError | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    @property
    def status(self) -> Status:
        """The latest word."""
        return self._status

    def statuses(self) -> Iterator[Status]:
        """Every new status (or the latest, for a slow listener), until it is all over."""
        seen = 0
        while True:
            with self._news:
                while self._number == seen and not self._is_over:
                    self._news.wait()
                if self._number == seen:
                    return
                seen, status = self._number, self._status
            yield status

    def failure(self) -> MirrorError | None:
        """Why it was given up, if it was."""
        return self._failure

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to so many bytes a second; 0 lifts the limit. Outlives the driver."""
        settings = replace(self._assignment.job.settings, bytes_per_s=bytes_per_s)
        self._assignment = replace(
            self._assignment, job=replace(self._assignment.job, settings=settings)
        )
        self._order(Order(do=Do.RATE, bytes_per_s=bytes_per_s))

    def drain(self, within_s: float = DRAIN_WITHIN_S) -> None:
        """Have everything finished and given back; returns when it is all over."""
        self._end(Order(do=Do.DRAIN), within_s)

    def stop(self, within_s: float = STOP_WITHIN_S) -> None:
        """End now; returns when it is all over."""
        self._end(Order(do=Do.STOP), within_s)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._is_wanted and not self._failure:
                began = time.monotonic()
                code = self._run_driver()
                if self._is_wanted:
                    self._judge(code, time.monotonic() - began)
        finally:
            shutil.rmtree(self._temporary, ignore_errors=True)
            with self._news:
                self._is_over = True
                self._news.notify_all()

    def _run_driver(self) -> int:
        """Start a driver and listen to it until it is gone; returns its exit code."""
        process = DriverProcess(self._module, self._temporary, Path(self._assignment.log))
        with self._news:
            self._process = process
            wanted = self._is_wanted
        process.say(self._assignment.to_line())
        if wanted:
            for line in process.lines(SILENCE_S):
                self._publish(Status.from_line(line))
        left_s = self._end_by - time.monotonic() if not self._is_wanted else STOP_WITHIN_S
        return process.end(max(left_s, 0.0))

    def _judge(self, code: int, lasted_s: float) -> None:
        """Nobody asked the driver to end: is another one to be tried?"""
        last = self._status
        lost = DriverLost(f"the Spark driver ended with code {code}; see {self._assignment.log}")
        if last.phase is Phase.FAILED and not last.is_retriable:
            self._failure = MirrorError(last.trouble)
            return
        if lasted_s > STEADY_S:
            self._backoff.reset()
        pause_s = self._backoff.pause_s()
        why = last.trouble if last.phase is Phase.FAILED and last.trouble else str(lost)
        log.warning("%s; the next driver starts in %.0f s", why, pause_s)
        self._publish(replace(last, phase=Phase.RESTARTING, trouble=why, slots=0))
        with self._news:
            self._news.wait_for(lambda: not self._is_wanted, timeout=pause_s)

    def _publish(self, status: Status) -> None:
        with self._news:
            self._status = status
            self._number += 1
            self._news.notify_all()

    # -- ending ---------------------------------------------------------------------------------

    def _order(self, order: Order) -> None:
        if self._process:
            self._process.say(order.to_line())

    def _end(self, order: Order, within_s: float) -> None:
        with self._news:
            self._is_wanted = False
            self._end_by = time.monotonic() + within_s
            self._news.notify_all()
        self._order(order)
        if not self._thread.ident:
            shutil.rmtree(self._temporary, ignore_errors=True)
            return
        self._thread.join(timeout=within_s)
        if self._thread.is_alive() and self._process:
            log.warning("The Spark driver did not end within %.0f s and is killed", within_s)
            self._process.kill()
            self._thread.join(timeout=STOP_WITHIN_S)
