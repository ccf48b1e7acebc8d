"""What the herder is doing just now, for those who wait in vain and for /health.

The sentences are Connect's; what stands in them is ours.
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
    """Something that takes its time, and may be over."""

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
    """The stage of one thread, which enters and leaves; any thread may ask."""

    def __init__(self, clock: Clock = _now) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._stage: Stage | None = None

    @contextmanager
    def enter(self, doing: str) -> Iterator[None]:
        """Say what goes on inside the block: `writing ...`. An inner block hides the outer."""
        outer = self._push(Stage(description=doing, started=self._clock()))
        try:
            yield
        finally:
            self._pop(outer)

    def summary(self) -> str:
        """Say it in a sentence; nothing was ever done: no sentence."""
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
