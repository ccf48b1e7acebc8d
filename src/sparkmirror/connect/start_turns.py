"""Starts of many connectors and tasks, a few at a time.

A rebalance may start a hundred connectors at once. Each lists all topics of two clusters, and their
tasks are planned, which is work for the processor. In turns, the first connectors are ready early,
the others use what these have decoded (`cluster.describe_topics`), and the worker keeps answering
requests meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MAX_TURNS = 2
"""How many starts have their turn at the same time."""
MAX_TURN_S = 1.0
"""A turn that takes longer waits for a cluster: it keeps no other start waiting any more."""


class StartTurns:
    """The turns that are taken now. Any thread may call it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._condition = threading.Condition()
        self._ends: dict[object, float] = {}
        """Until when each turn keeps others waiting."""

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and have it in the block."""
        owner = object()
        with self._condition:
            while (wait_s := self._wait_s()) > 0:
                self._condition.wait(wait_s)
            self._ends[owner] = self._clock() + MAX_TURN_S
        try:
            yield
        finally:
            with self._condition:
                del self._ends[owner]
                self._condition.notify()

    def _wait_s(self) -> float:
        """Return how long the others keep their turns at most; 0 if one is free."""
        now = self._clock()
        left = sorted(end - now for end in self._ends.values() if end > now)
        return left[-MAX_TURNS] if len(left) >= MAX_TURNS else 0.0


WORKER_TURNS = StartTurns()
"""The turns of all starts in this process."""
