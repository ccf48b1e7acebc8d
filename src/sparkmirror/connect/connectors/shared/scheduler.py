"""Runs jobs at intervals in one thread, so that two jobs never run at the same time.

An error of a job is logged, and the job runs again after its interval. A job may return the seconds
until its next run instead. A late job runs once, not once per missed interval.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror import logging_context
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

MIN_INTERVAL_S = 0.1
"""The shortest interval: a shorter one would overload the brokers."""


@dataclass(slots=True)
class _Job:
    description: str
    run: Callable[[], float | None]
    interval_s: float
    next_run_at: float = 0.0


class Scheduler:
    """One connector's jobs. Any thread may call `stop`; jobs are added before `start`."""

    def __init__(
        self, name: str, *, connector: str, on_end: Callable[[], None] = lambda: None
    ) -> None:
        """`name` is the name of the thread, and stands in log lines.

        The thread calls `on_end` after its last job.
        """
        self._name = name
        self._connector = connector
        self._on_end = on_end
        self._jobs: list[_Job] = []
        self._stopped = threading.Event()
        self._thread = logging_context.ContextThread(target=self._run, name=name)

    def schedule_repeating(
        self,
        interval_s: float | None,
        description: str,
        run: Callable[[], float | None],
        *,
        first: bool = False,
    ) -> None:
        """Add a job that runs at once and then at every interval; None adds none.

        If several jobs are due at the same time, a `first` one runs before the others.
        """
        if interval_s is None:
            return
        job = _Job(description, run, max(interval_s, MIN_INTERVAL_S))
        self._jobs.insert(0 if first else len(self._jobs), job)

    def start(self) -> None:
        """Start the thread."""
        now = time.monotonic()
        for job in self._jobs:
            job.next_run_at = now
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Start no further job and wait for the running one; return whether it has ended."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=timeout_s)
        return not self._thread.is_alive()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called; long jobs should check it."""
        return self._stopped.is_set()

    def _run(self) -> None:
        with logging_context.context(connector=self._connector):
            try:
                self._run_jobs()
            finally:
                self._on_end()

    def _run_jobs(self) -> None:
        while self._jobs:
            job = min(self._jobs, key=lambda job: job.next_run_at)
            if self._stopped.wait(max(job.next_run_at - time.monotonic(), 0.0)):
                return
            self._run_job(job)

    def _run_job(self, job: _Job) -> None:
        began = time.monotonic()
        delay_s: float | None = None
        try:
            delay_s = job.run()
        except MirrorError as error:
            self._log_error(job.description, error)
        except Exception:
            log.exception("%s caught exception in scheduled task: %s", self._name, job.description)
        now = time.monotonic()
        log.debug("%s took %d ms", job.description, (now - began) * 1000)
        if delay_s is None:
            job.next_run_at = max(job.next_run_at + job.interval_s, now)
        else:
            job.next_run_at = now + max(delay_s, MIN_INTERVAL_S)

    def _log_error(self, description: str, error: MirrorError) -> None:
        if not self.is_stopped:
            log.error(
                "%s caught exception in scheduled task: %s: %s", self._name, description, error
            )
