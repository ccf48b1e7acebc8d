"""A thread for code that may block or hang: one connector's, or what runs its tasks.

Jobs run in the order they were posted. The herder's thread never waits for a lane: it asks whether
the lane has caught up, and gives it up if not. A lane that was given up may still be in its last
job for ever; it does nothing after it.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import TypeAlias

from sparkmirror import logs

log = logging.getLogger(__name__)

Runnable: TypeAlias = Callable[[], None]


class SerialExecutor:
    """One thread. Jobs handle their own errors; one that does not is logged, and the next runs."""

    def __init__(self, name: str, *, connector: str, scope: str = "") -> None:
        self._connector = connector
        self._scope = scope
        self._jobs: queue.SimpleQueue[Runnable | None] = queue.SimpleQueue()
        self._is_abandoned = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Runnable) -> None:
        """Have it done after all that was posted before."""
        self._jobs.put(job)

    def close(self) -> None:
        """End after all that was posted."""
        self._jobs.put(None)

    def abandon(self) -> None:
        """Do nothing any more once the job under way is over, if it ever is."""
        self._is_abandoned = True
        self._jobs.put(None)

    def join(self, within_s: float) -> bool:
        """Wait for the end; say whether it came."""
        self._thread.join(timeout=max(within_s, 0.0))
        return not self._thread.is_alive()

    def _run(self) -> None:
        with logs.context(connector=self._connector, scope=self._scope):
            while (job := self._jobs.get()) is not None and not self._is_abandoned:
                try:
                    job()
                except Exception:
                    log.exception("Uncaught exception while running connector %s", self._connector)
