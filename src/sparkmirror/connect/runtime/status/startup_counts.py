"""How many starts of connectors, or of tasks, have succeeded and failed on this worker.

A failure after a successful start is no failed start. The herder thread writes; any thread may read
the two numbers.
"""

from __future__ import annotations

from collections.abc import Hashable


class StartupCounts:
    """Counts starts. A key names a connector or a task."""

    def __init__(self) -> None:
        self.success = 0
        self.failure = 0
        self._started: set[Hashable] = set()

    def on_started(self, key: Hashable) -> None:
        """Count a success, unless this one runs already: tasks may report every second."""
        if key not in self._started:
            self._started.add(key)
            self.success += 1

    def on_failed(self, key: Hashable) -> None:
        """Count a failure, unless this one had started."""
        if key in self._started:
            self._started.discard(key)
        else:
            self.failure += 1

    def on_stopped(self, key: Hashable) -> None:
        """The next start counts again."""
        self._started.discard(key)
