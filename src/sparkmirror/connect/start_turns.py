"""Starts of many connectors and tasks, a few at a time.

A rebalance may start a hundred connectors at once. Each lists all topics of two clusters, and their
tasks are planned, which is work for the processor. In turns, the first connectors are ready early,
the others use what these have decoded (`cluster.describe_topics`), and the worker keeps answering
requests meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

MAX_TURNS = 2
"""How many starts have their turn at the same time."""
LOG_INTERVAL_S = 5.0
"""How often a start that waits says so."""
MAX_TURN_S = 1.0
"""A turn that takes longer waits for a cluster: it keeps no other start waiting any more."""


class StartTurns:
    """The turns that are taken now. Any thread may call it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._condition = threading.Condition()
        self._queue: deque[threading.Event] = deque()
        """Those that wait, in the order of their calls. The event of the first one is set."""
        self._ends: dict[object, float] = {}
        """Until when each turn keeps others waiting."""

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and have it in the block."""
        own = threading.Event()
        with self._condition:
            self._queue.append(own)
            self._queue[0].set()
        while not own.wait(LOG_INTERVAL_S):
            log.info("The start waits for its turn: %d other starts come first", self._before(own))
        with self._condition:
            while (wait_s := self._wait_s()) > 0:
                self._condition.wait(wait_s)
            self._ends[own] = self._clock() + MAX_TURN_S
            self._queue.popleft()
            if self._queue:
                self._queue[0].set()
        try:
            yield
        finally:
            with self._condition:
                del self._ends[own]
                self._condition.notify()

    def _before(self, own: threading.Event) -> int:
        with self._condition:
            return self._queue.index(own)

    def _wait_s(self) -> float:
        """Return how long the others keep their turns at most; 0 if one is free."""
        now = self._clock()
        left = sorted(end - now for end in self._ends.values() if end > now)
        return left[-MAX_TURNS] if len(left) >= MAX_TURNS else 0.0


WORKER_TURNS = StartTurns()
"""The turns of all starts in this process."""
