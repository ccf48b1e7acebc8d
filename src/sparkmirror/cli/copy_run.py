"""One copy from start to end: statuses in, figures and events shown, and why it ended.

    starting ──▶ running ──▶ draining ──▶ over
                    │   caught up, stuck or interrupted: drain, so that everything sent is known
                    └── failed: over at once

Knows the engine as a Protocol and the screen as another; no Spark, no terminal, no signals.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.cli.copy_goal import Goal, Verdict
from sparkmirror.cli.copy_meter import Meter, Progress
from sparkmirror.copy.snapshot import Event
from sparkmirror.engine.status import Phase, Status

DRAINED_WITHIN_S = 60.0
MOST_STARTS = 3
"""How often an engine may fail to start before it is given up."""


class Engine(Protocol):
    """What runs a job."""

    def start(self) -> None:
        """Begin; returns at once."""
        ...

    def statuses(self) -> Iterator[Status]:
        """Say how it goes, about once a second; ends when the job has ended, well or badly."""
        ...

    def drain(self) -> None:
        """Finish what is under way, then end; returns at once."""
        ...

    def stop(self) -> None:
        """End now, whatever is under way, and leave nothing running."""
        ...


class Screen(Protocol):
    """Where it is shown."""

    def show(self, status: Status, progress: Progress) -> None:
        """Show how everything stands."""
        ...

    def tell(self, event: Event) -> None:
        """Show something that happened; it stays."""
        ...

    def say(self, text: str) -> None:
        """Show a sentence; it stays."""
        ...


class Why(enum.Enum):
    """Why a copy ended."""

    CAUGHT_UP = "caught up"
    STUCK = "stuck"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a copy ended."""

    why: Why
    status: Status
    progress: Progress
    events: tuple[Event, ...]


@dataclass(slots=True, kw_only=True)
class Run:
    """Follows one job."""

    engine: Engine
    goal: Goal
    meter: Meter
    screen: Screen
    is_interrupted: Callable[[], bool]
    clock: Callable[[], float]

    def follow(self) -> Ending:
        """Run the job to its end. Whatever happens, nothing is left running."""
        try:
            self.engine.start()
            return self._follow()
        finally:
            self.engine.stop()

    def _follow(self) -> Ending:
        why: Why | None = None
        starts = 0
        drain_by = float("inf")
        status = Status(phase=Phase.STARTING)
        progress = self.meter.take(status.snapshot, self.clock())
        teller = _Teller(self.screen)
        for status in self.engine.statuses():
            now = self.clock()
            progress = self.meter.take(status.snapshot, now, status.application_id)
            teller.tell(status)
            self.screen.show(status, progress)
            if why is None:
                why = self._reason_to_end(status, now)
                if why is not None:
                    drain_by = now + DRAINED_WITHIN_S
                    self.engine.drain()
            starts = 0 if status.phase is Phase.RUNNING else starts + _is_a_failed_start(status)
            if starts >= MOST_STARTS:
                why = Why.FAILED
                break
            if now > drain_by:
                self.screen.say("Not everything was given back in time; the next run finds out.")
                break
        if status.phase is Phase.FAILED and why is not Why.CAUGHT_UP:
            why = Why.FAILED
        return Ending(why=why or Why.FAILED, status=status, progress=progress, events=teller.events)

    def _reason_to_end(self, status: Status, now: float) -> Why | None:
        if self.is_interrupted():
            return Why.INTERRUPTED
        if status.phase is not Phase.RUNNING:
            return None
        match self.goal.judge(status.snapshot, now):
            case Verdict.CAUGHT_UP:
                return Why.CAUGHT_UP
            case Verdict.STUCK:
                return Why.STUCK
            case Verdict.COPYING:
                return None


def _is_a_failed_start(status: Status) -> bool:
    return status.phase is Phase.RESTARTING


class _Teller:
    """Tells each event once, and troubles when they change."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._told: dict[Event, None] = {}
        self._trouble = ""

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything told, oldest first."""
        return tuple(self._told)

    def tell(self, status: Status) -> None:
        """Tell what is new."""
        for event in status.snapshot.events:
            if event not in self._told:
                self._told[event] = None
                self._screen.tell(event)
        is_news = status.trouble != self._trouble and status.phase is not Phase.FAILED
        if status.trouble and is_news:
            self._screen.say(status.trouble)
        self._trouble = status.trouble
