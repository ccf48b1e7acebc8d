"""A thread for code that may block or hang: a connector's, or a task group's.

Jobs run in the order of `submit`. The herder thread never waits for an executor: it checks later
whether the job has ended, and abandons the executor if not. An abandoned executor may hang in its
last job for ever; it runs no further job.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable
from typing import TypeAlias

from sparkmirror import logging_context

log = logging.getLogger(__name__)

Runnable: TypeAlias = Callable[[], None]


class SerialExecutor:
    """One thread. An error that a job does not handle is logged, and the next job runs."""

    def __init__(self, name: str, *, connector: str, scope: str = "") -> None:
        self._connector = connector
        self._scope = scope
        self._jobs: queue.SimpleQueue[Runnable | None] = queue.SimpleQueue()
        self._is_abandoned = False
        self._thread = logging_context.ContextThread(target=self._run, name=name)
        self._thread.start()

    def submit(self, job: Runnable) -> None:
        """Run a job after all that were submitted before."""
        self._jobs.put(job)

    def close(self) -> None:
        """End the thread after all submitted jobs."""
        self._jobs.put(None)

    def abandon(self) -> None:
        """End the thread after the running job, if that ever ends; drop all others."""
        self._is_abandoned = True
        self._jobs.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; return whether it has ended."""
        self._thread.join(timeout=max(timeout_s, 0.0))
        return not self._thread.is_alive()

    def _run(self) -> None:
        with logging_context.context(connector=self._connector, scope=self._scope):
            while (job := self._jobs.get()) is not None and not self._is_abandoned:
                try:
                    job()
                except Exception:
                    log.exception("Uncaught exception while running connector %s", self._connector)
