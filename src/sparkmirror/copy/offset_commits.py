"""How often and how long a driver writes source offsets to Connect's offsets topic."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

_RECENT_WRITES = 5


class OffsetCommits(NamedTuple):
    """The writes since a driver started."""

    successes: int = 0
    failures: int = 0
    total_ms: int = 0
    """The time that the successful ones took."""
    max_ms: int = 0
    """The longest one of the last few."""


class OffsetCommitTimer:
    """Measures the writes of one driver. Its writer calls it; any thread may read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._recent_ms: deque[int] = deque(maxlen=_RECENT_WRITES)
        self._commits = OffsetCommits()

    @property
    def commits(self) -> OffsetCommits:
        """The writes so far."""
        return self._commits

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Count what runs inside as one write; an exception makes it a failure."""
        begun, commits = self._clock(), self._commits
        try:
            yield
        except BaseException:
            self._commits = commits._replace(failures=commits.failures + 1)
            raise
        took_ms = round((self._clock() - begun) * 1000)
        self._recent_ms.append(took_ms)
        self._commits = commits._replace(
            successes=commits.successes + 1,
            total_ms=commits.total_ms + took_ms,
            max_ms=max(self._recent_ms),
        )
