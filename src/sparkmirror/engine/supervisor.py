"""The supervisor: keeps one assignment running, whatever becomes of the processes that run it.

    with Supervisor(assignment) as supervisor:
        for status in supervisor.statuses():
            if ...:
                supervisor.drain()

Starts the driver, listens to it, and starts another one after a pause when it, or its JVM, has
died. Never imports Spark. When this process dies the driver notices, drains and ends.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from sparkmirror.copy.job import Job
from sparkmirror.copy.snapshot import Snapshot
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
FALSE_STARTS = 3
"""So many drivers in a row that never got to copy: something is wrong that time does not heal."""


class Supervisor:
    """Keeps one assignment running. Nothing here may be called by two threads at once."""

    def __init__(
        self, assignment: Assignment, *, module: str = DRIVER, backoff: Backoff | None = None
    ) -> None:
        """`module` is what the driver process runs."""
        self._assignment = assignment.with_absolute_paths()
        self._module = module
        self._backoff = backoff or Backoff(first_s=1.0, longest_s=60.0)
        self._news = threading.Condition()
        self._status = Status(phase=Phase.STARTING, tasks=len(assignment.job.tasks))
        self._number = 0
        self._process: DriverProcess | None = None
        self._has_run = False
        self._false_starts = 0
        self._is_wanted = True
        self._ending: Order | None = None
        self._is_over = False
        self._end_by = float("inf")
        self._failure: MirrorError | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

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
        with self._news:
            settings = replace(self._assignment.job.settings, bytes_per_s=bytes_per_s)
            self._assignment = replace(
                self._assignment, job=replace(self._assignment.job, settings=settings)
            )
            self._order(Order(do=Do.RATE, bytes_per_s=bytes_per_s))

    def replan(self, job: Job) -> None:
        """Go on with another job of the same connector; without tasks it holds still.

        Outlives the driver: the next one begins with it.
        """
        with self._news:
            self._assignment = replace(self._assignment, job=job)
            self._order(Order(do=Do.PLAN, job=job))

    def begin_epoch(self) -> None:
        """Have every task start anew."""
        with self._news:
            self._order(Order(do=Do.EPOCH))

    def drain(self, within_s: float = DRAIN_WITHIN_S) -> None:
        """Have everything finished and given back; returns at once. `statuses` ends with it."""
        self._end(Order(do=Do.DRAIN), within_s)

    def wait(self, timeout_s: float) -> None:
        """Wait until it is all over, at most so long."""
        if self._thread.ident:
            self._thread.join(timeout=timeout_s)

    def stop(self, within_s: float = STOP_WITHIN_S) -> None:
        """End now, if it has not ended yet; returns when nothing runs any more."""
        if not self._thread.ident:
            return
        self._end(Order(do=Do.STOP), within_s)
        self._thread.join(timeout=within_s)
        if self._thread.is_alive() and self._process:
            log.warning("The Spark driver did not end within %.0f s and is killed", within_s)
            self._process.kill()
            self._thread.join(timeout=STOP_WITHIN_S)

    def __enter__(self) -> Self:
        self.start()
        return self

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
                with tempfile.TemporaryDirectory(
                    prefix="sparkmirror-", ignore_cleanup_errors=True
                ) as temporary:
                    code = self._run_driver(Path(temporary))
                if self._is_wanted:
                    self._judge(code, time.monotonic() - began)
        finally:
            with self._news:
                self._is_over = True
                self._news.notify_all()

    def _run_driver(self, temporary: Path) -> int:
        """Start a driver and listen to it until it is gone; returns its exit code."""
        process = DriverProcess(self._module, temporary, Path(self._assignment.log))
        with self._news:
            process.say(self._assignment.to_line())
            self._has_run = False
            self._process = process
            if self._ending:  # it was given before there was anybody to take it
                self._order(self._ending)
        left_s = 0.0
        try:
            seen = Snapshot()
            for line in process.lines(self._patience_s):
                status = Status.from_line(line, seen)
                seen = status.snapshot
                self._publish(status)
            left_s = STOP_WITHIN_S if self._is_wanted else self._end_by - time.monotonic()
        finally:
            code = process.end(max(left_s, 0.0))
        return code

    def _patience_s(self, silent_s: float) -> float:
        return min(SILENCE_S - silent_s, self._end_by - time.monotonic())

    def _judge(self, code: int, lasted_s: float) -> None:
        """Nobody asked the driver to end: is another one to be tried?"""
        last = self._status
        why = f"the Spark driver ended with code {code}; see {self._assignment.log}"
        if last.phase is Phase.FAILED and last.trouble:
            why = last.trouble
        self._false_starts = 0 if self._has_run else self._false_starts + 1
        is_final = last.phase is Phase.FAILED and not last.is_retriable
        if is_final or self._false_starts >= FALSE_STARTS:
            self._failure = MirrorError(why) if is_final else DriverLost(why)
            self._publish(replace(last, phase=Phase.FAILED, trouble=why, slots=0))
            return
        if lasted_s > STEADY_S:
            self._backoff.reset()
        pause_s = self._backoff.pause_s()
        log.warning("%s; the next driver starts in %.0f s", why, pause_s)
        self._publish(replace(last, phase=Phase.RESTARTING, trouble=why, slots=0))
        with self._news:
            self._news.wait_for(lambda: not self._is_wanted, timeout=pause_s)

    def _publish(self, status: Status) -> None:
        with self._news:
            self._has_run |= status.phase is Phase.RUNNING
            self._status = status
            self._number += 1
            self._news.notify_all()

    # -- ending ---------------------------------------------------------------------------------

    def _order(self, order: Order) -> None:
        if self._process:
            self._process.say(order.to_line())

    def _end(self, order: Order, within_s: float) -> None:
        with self._news:
            self._is_wanted, self._ending = False, order
            self._end_by = min(self._end_by, time.monotonic() + within_s)
            self._order(order)
            self._news.notify_all()
