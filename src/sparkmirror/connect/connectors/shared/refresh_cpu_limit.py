"""How often the connectors of one worker may refresh what they know of their clusters.

A connector alone takes at most one part in `IDLE_TO_BUSY_RATIO` of a processor, and many connectors
together hardly more than one part in `SHARED_IDLE_TO_BUSY_RATIO`. So a worker with few connectors
finds new topics within seconds, and one with many does not work for its refreshes alone.
"""

from __future__ import annotations

import threading

IDLE_TO_BUSY_RATIO = 50
SHARED_IDLE_TO_BUSY_RATIO = 200


class RefreshCpuLimit:
    """The processor seconds of the last refresh of each connector. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cpu_s: dict[object, float] = {}

    def pause_s(self, owner: object, cpu_s: float) -> float:
        """Return how long an owner should wait after a refresh that took so much processor time."""
        with self._lock:
            self._cpu_s[owner] = cpu_s
            others_s = sum(self._cpu_s.values()) - cpu_s
            return IDLE_TO_BUSY_RATIO * cpu_s + SHARED_IDLE_TO_BUSY_RATIO * others_s

    def remove(self, owner: object) -> None:
        """Forget an owner: it refreshes no more."""
        with self._lock:
            self._cpu_s.pop(owner, None)


WORKER_BUDGET = RefreshCpuLimit()
"""The budget of all connectors of this process."""
