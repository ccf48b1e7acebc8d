"""One copy from start to end: statuses in, figures and events shown, and why it ended.

    starting ──▶ running ──▶ draining ──▶ over
                    │   caught up, stuck or interrupted: drain, so that everything sent is known
                    └── failed: over at once

Knows the engine as a Protocol and the screen as another; no Spark, no terminal, no signals.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.cli.copy_goal import Goal, Verdict
from sparkmirror.cli.copy_meter import Meter, Progress
from sparkmirror.copy.snapshot import Event
from sparkmirror.engine.status import Phase, Status

DRAINED_WITHIN_S = 60.0


class Engine(Protocol):
    """What runs a job."""

    def start(self) -> None:
        """Begin; returns at once."""
        ...

    def statuses(self) -> Iterator[Status]:
        """Say how it goes, about once a second; ends when the job has ended, well or badly.

        An engine tries again by itself, and gives up by itself, what does not work at once.
        """
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
    _why: Why | None = field(init=False, default=None)
    _drain_by: float = field(init=False, default=float("inf"))

    def follow(self) -> Ending:
        """Run the job to its end. Whatever happens, nothing is left running."""
        try:
            self.engine.start()
            return self._follow()
        finally:
            self.engine.stop()

    def _follow(self) -> Ending:
        status = Status(phase=Phase.STARTING)
        progress = self.meter.take(status.snapshot, self.clock())
        teller = _Teller(self.screen)
        for status in self.engine.statuses():
            now = self.clock()
            progress = self.meter.take(status.snapshot, now, status.application_id)
            teller.tell(status)
            self.screen.show(status, progress)
            self._drain_if_it_is_time(status, now)
            if self._is_hopeless(now):
                break
        why = self._verdict(status, self.clock())
        return Ending(why=why, status=status, progress=progress, events=teller.events)

    def _drain_if_it_is_time(self, status: Status, now: float) -> None:
        if self._why is None:
            self._why = self._reason_to_end(status, now)
            if self._why is not None:
                self._drain_by = now + DRAINED_WITHIN_S
                self.engine.drain()
            if self._why is Why.INTERRUPTED:
                self.screen.say("Finishing what is under way; Ctrl-C again ends at once.")

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

    def _is_hopeless(self, now: float) -> bool:
        """Whether waiting for more statuses makes no sense."""
        if now <= self._drain_by:
            return False
        self.screen.say("Not everything was given back in time; the next run finds out.")
        return True

    def _verdict(self, status: Status, now: float) -> Why:
        """What was reached is reached, whatever else happened on the way out."""
        if self.goal.judge(status.snapshot, now) is Verdict.CAUGHT_UP:
            return Why.CAUGHT_UP
        if status.phase is Phase.FAILED or self._why is None:
            return Why.FAILED
        return self._why


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
        if status.phase is Phase.FAILED:
            return  # either it is the end and told as such, or the next status tells it
        if status.trouble and status.trouble != self._trouble:
            self._screen.say(status.trouble)
        self._trouble = status.trouble
