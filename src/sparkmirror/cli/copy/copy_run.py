"""One copy from start to end: reads statuses, shows progress and events, returns why it ended.

    starting ──▶ running ──▶ draining ──▶ over
                    │   caught up, stuck or interrupted: drain, so that all sent batches are
                    │   acknowledged
                    └── failed: over at once

The engine and the screen are Protocols. This module knows no Spark, no terminal and no signals.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.cli.copy.completion import CompletionCheck, CopyState
from sparkmirror.cli.copy.progress_tracker import CopyProgress, ProgressTracker
from sparkmirror.copy.snapshot import CopyEvent
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus

DRAIN_TIMEOUT_S = 60.0


class Engine(Protocol):
    """Runs a job."""

    def start(self) -> None:
        """Start the job; does not block."""
        ...

    def statuses(self) -> Iterator[DriverStatus]:
        """Yield a status about once a second; end when the job has ended or failed.

        The engine itself retries, and itself decides when to give up.
        """
        ...

    def drain(self) -> None:
        """Finish the batches in flight, then end; does not block."""
        ...

    def stop(self) -> None:
        """End now and leave no process running."""
        ...


class Screen(Protocol):
    """Shows a copy to the operator."""

    def show(self, status: DriverStatus, progress: CopyProgress) -> None:
        """Show the current progress."""
        ...

    def print_event(self, event: CopyEvent) -> None:
        """Print an event; it is not overwritten."""
        ...

    def print_message(self, text: str) -> None:
        """Print a sentence; it is not overwritten."""
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
    """Runs and watches one job."""

    engine: Engine
    completion: CompletionCheck
    tracker: ProgressTracker
    screen: Screen
    is_interrupted: Callable[[], bool]
    clock: Callable[[], float]
    _stop_reason: StopReason | None = field(init=False, default=None)
    _drain_deadline: float = field(init=False, default=float("inf"))

    def run(self) -> CopyRunResult:
        """Run the job to its end. Always stops the engine."""
        try:
            self.engine.start()
            return self._run()
        finally:
            self.engine.stop()

    def _run(self) -> CopyRunResult:
        status = DriverStatus(phase=DriverPhase.STARTING)
        progress = self.tracker.update(status.snapshot, self.clock())
        printer = _EventPrinter(self.screen)
        for status in self.engine.statuses():
            now = self.clock()
            progress = self.tracker.update(status.snapshot, now, status.application_id)
            printer.print_new(status)
            self.screen.show(status, progress)
            self._drain_if_done(status, now)
            if self._drain_timed_out(now):
                break
        reason = self._final_reason(status, self.clock())
        return CopyRunResult(reason=reason, status=status, progress=progress, events=printer.events)

    def _drain_if_done(self, status: DriverStatus, now: float) -> None:
        if self._stop_reason is None:
            self._stop_reason = self._find_stop_reason(status, now)
            if self._stop_reason is not None:
                self._drain_deadline = now + DRAIN_TIMEOUT_S
                self.engine.drain()
            if self._stop_reason is StopReason.INTERRUPTED:
                self.screen.print_message("Finishing batches in flight; Ctrl-C again ends at once.")

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
        """Whether draining took too long."""
        if now <= self._drain_deadline:
            return False
        self.screen.print_message("Draining took too long; the next run checks the target.")
        return True

    def _final_reason(self, status: DriverStatus, now: float) -> StopReason:
        """A copy that has caught up stays caught up, even if draining fails."""
        if self.completion.evaluate(status.snapshot, now) is CopyState.CAUGHT_UP:
            return StopReason.CAUGHT_UP
        if status.phase is DriverPhase.FAILED or self._stop_reason is None:
            return StopReason.FAILED
        return self._stop_reason


class _EventPrinter:
    """Prints each event once, and each problem when it changes."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._printed: dict[CopyEvent, None] = {}
        self._last_error = ""

    @property
    def events(self) -> tuple[CopyEvent, ...]:
        """All printed events, oldest first."""
        return tuple(self._printed)

    def print_new(self, status: DriverStatus) -> None:
        """Print the events and the problem that are new."""
        for event in status.snapshot.events:
            if event not in self._printed:
                self._printed[event] = None
                self._screen.print_event(event)
        if status.phase is DriverPhase.FAILED:
            return  # printed at the end of the copy, or with the next status
        if status.problem and status.problem != self._last_error:
            self._screen.print_message(status.problem)
        self._last_error = status.problem
