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

from sparkmirror.cli.copy.completion import CompletionCheck, CopyState
from sparkmirror.cli.copy.progress import CopyProgress, ProgressTracker
from sparkmirror.copy.snapshot import CopyEvent
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus

DRAIN_TIMEOUT_S = 60.0


class Engine(Protocol):
    """What runs a job."""

    def start(self) -> None:
        """Begin; returns at once."""
        ...

    def statuses(self) -> Iterator[DriverStatus]:
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

    def show(self, status: DriverStatus, progress: CopyProgress) -> None:
        """Show how everything stands."""
        ...

    def print_event(self, event: CopyEvent) -> None:
        """Show something that happened; it stays."""
        ...

    def print_message(self, text: str) -> None:
        """Show a sentence; it stays."""
        ...


class StopReason(enum.Enum):
    """Why a copy ended."""

    CAUGHT_UP = "caught up"
    STUCK = "stuck"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRunResult:
    """How a copy ended."""

    reason: StopReason
    status: DriverStatus
    progress: CopyProgress
    events: tuple[CopyEvent, ...]


@dataclass(slots=True, kw_only=True)
class CopyRun:
    """Follows one job."""

    engine: Engine
    completion: CompletionCheck
    tracker: ProgressTracker
    screen: Screen
    is_interrupted: Callable[[], bool]
    clock: Callable[[], float]
    _stop_reason: StopReason | None = field(init=False, default=None)
    _drain_deadline: float = field(init=False, default=float("inf"))

    def run(self) -> CopyRunResult:
        """Run the job to its end. Whatever happens, nothing is left running."""
        try:
            self.engine.start()
            return self._run()
        finally:
            self.engine.stop()

    def _run(self) -> CopyRunResult:
        status = DriverStatus(phase=DriverPhase.STARTING)
        progress = self.tracker.update(status.snapshot, self.clock())
        teller = _EventPrinter(self.screen)
        for status in self.engine.statuses():
            now = self.clock()
            progress = self.tracker.update(status.snapshot, now, status.application_id)
            teller.print_new(status)
            self.screen.show(status, progress)
            self._drain_if_done(status, now)
            if self._drain_timed_out(now):
                break
        why = self._final_reason(status, self.clock())
        return CopyRunResult(reason=why, status=status, progress=progress, events=teller.events)

    def _drain_if_done(self, status: DriverStatus, now: float) -> None:
        if self._stop_reason is None:
            self._stop_reason = self._find_stop_reason(status, now)
            if self._stop_reason is not None:
                self._drain_deadline = now + DRAIN_TIMEOUT_S
                self.engine.drain()
            if self._stop_reason is StopReason.INTERRUPTED:
                self.screen.print_message("Finishing what is under way; Ctrl-C again ends at once.")

    def _find_stop_reason(self, status: DriverStatus, now: float) -> StopReason | None:
        if self.is_interrupted():
            return StopReason.INTERRUPTED
        if status.phase is not DriverPhase.RUNNING:
            return None
        match self.completion.evaluate(status.snapshot, now):
            case CopyState.CAUGHT_UP:
                return StopReason.CAUGHT_UP
            case CopyState.STUCK:
                return StopReason.STUCK
            case CopyState.COPYING:
                return None

    def _drain_timed_out(self, now: float) -> bool:
        """Whether waiting for more statuses makes no sense."""
        if now <= self._drain_deadline:
            return False
        self.screen.print_message("Not everything was given back in time; the next run finds out.")
        return True

    def _final_reason(self, status: DriverStatus, now: float) -> StopReason:
        """What was reached is reached, whatever else happened on the way out."""
        if self.completion.evaluate(status.snapshot, now) is CopyState.CAUGHT_UP:
            return StopReason.CAUGHT_UP
        if status.phase is DriverPhase.FAILED or self._stop_reason is None:
            return StopReason.FAILED
        return self._stop_reason


class _EventPrinter:
    """Tells each event once, and troubles when they change."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._printed: dict[CopyEvent, None] = {}
        self._last_error = ""

    @property
    def events(self) -> tuple[CopyEvent, ...]:
        """Everything told, oldest first."""
        return tuple(self._printed)

    def print_new(self, status: DriverStatus) -> None:
        """Tell what is new."""
        for event in status.snapshot.events:
            if event not in self._printed:
                self._printed[event] = None
                self._screen.print_event(event)
        if status.phase is DriverPhase.FAILED:
            return  # either it is the end and told as such, or the next status tells it
        if status.problem and status.problem != self._last_error:
            self._screen.print_message(status.problem)
        self._last_error = status.problem
