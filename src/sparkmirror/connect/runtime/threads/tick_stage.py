"""What the herder thread is doing now: shown by /health and by requests that time out.

The sentences are Connect's; the descriptions of the stages are sparkmirror's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One operation of the herder thread, running or completed."""

    description: str
    started: datetime
    completed: datetime | None = None

    def __str__(self) -> str:
        if self.completed is None:
            return (
                f"The worker is currently {self.description}, which began at"
                f" {_instant(self.started)}."
            )
        return (
            f"The last operation the worker completed was {self.description}, which began at "
            f"{_instant(self.started)} and completed at {_instant(self.completed)}."
        )


def _now() -> datetime:
    return datetime.now(UTC)


def _instant(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


class TickThreadStage:
    """The current stage of one thread. That thread enters stages; any thread reads the summary."""

    def __init__(self, clock: Clock = _now) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._stage: Stage | None = None

    @contextmanager
    def enter(self, description: str) -> Iterator[None]:
        """Set the stage for the block: `writing ...`. An inner block hides the outer one."""
        outer = self._push(Stage(description=description, started=self._clock()))
        try:
            yield
        finally:
            self._pop(outer)

    def summary(self) -> str:
        """Return Connect's sentence about the stage; empty before the first stage."""
        with self._lock:
            return "" if self._stage is None else str(self._stage)

    def _push(self, stage: Stage) -> Stage | None:
        with self._lock:
            outer, self._stage = self._stage, stage
            return outer

    def _pop(self, outer: Stage | None) -> None:
        with self._lock:
            inner = self._stage
            assert inner is not None
            if outer is not None and outer.completed is None:
                self._stage = outer
            else:
                self._stage = Stage(
                    description=inner.description, started=inner.started, completed=self._clock()
                )
