"""Jobs done again and again by one thread, so that no two of them ever run at once.

A job that fails is logged and done again at its next turn: what it is about may have healed by
then. A job that is late is done once, not once for every turn it has missed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror import logs
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

MIN_INTERVAL_S = 0.1
"""Intervals are at least this long, whatever people say: brokers need air."""


@dataclass(slots=True)
class _Job:
    description: str
    run: Callable[[], None]
    interval_s: float
    next_run_at: float = 0.0


class Scheduler:
    """One connector's jobs. `stop` may be called by any thread; jobs are added before `start`."""

    def __init__(self, name: str, *, connector: str) -> None:
        """`name` is what the thread is called, and whom log lines speak of."""
        self._name = name
        self._connector = connector
        self._jobs: list[_Job] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def schedule_repeating(
        self, interval_s: float | None, what: str, run: Callable[[], None], *, first: bool = False
    ) -> None:
        """Do something at once and then at every interval; None means: not at all.

        Of several that are due at the same time, the `first` one comes first, then in turn.
        """
        if interval_s is None:
            return
        job = _Job(what, run, max(interval_s, MIN_INTERVAL_S))
        self._jobs.insert(0 if first else len(self._jobs), job)

    def start(self) -> None:
        """Begin."""
        now = time.monotonic()
        for job in self._jobs:
            job.next_run_at = now
        self._thread.start()

    def stop(self, within_s: float) -> bool:
        """Let no further job begin, and wait for the one under way; say whether it has ended."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=within_s)
        return not self._thread.is_alive()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called: whatever takes long should look at it."""
        return self._stopped.is_set()

    def _run(self) -> None:
        with logs.context(connector=self._connector):
            while self._jobs:
                job = min(self._jobs, key=lambda job: job.next_run_at)
                if self._stopped.wait(max(job.next_run_at - time.monotonic(), 0.0)):
                    return
                self._run_job(job)

    def _run_job(self, job: _Job) -> None:
        began = time.monotonic()
        try:
            job.run()
        except MirrorError as error:
            self._log_error(job.description, error)
        except Exception:
            log.exception("%s caught exception in scheduled task: %s", self._name, job.description)
        now = time.monotonic()
        log.debug("%s took %d ms", job.description, (now - began) * 1000)
        job.next_run_at = max(job.next_run_at + job.interval_s, now)

    def _log_error(self, what: str, error: MirrorError) -> None:
        if not self.is_stopped:
            log.error("%s caught exception in scheduled task: %s: %s", self._name, what, error)
