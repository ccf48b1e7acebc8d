"""An engine that yields the statuses of a script, and a screen that records its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sparkmirror.cli.copy.progress_tracker import CopyProgress
from sparkmirror.copy.snapshot import CopyEvent
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus

ScriptStep = DriverStatus | Callable[[], None]
"""A status to yield, or a function to call before the next status."""


class ScriptedEngine:
    """Yields the statuses of a script; after a drain those of another. Records its calls."""

    def __init__(self, script: Iterable[ScriptStep], drained: Iterable[ScriptStep] = ()) -> None:
        self._script = list(script)
        self._drained = list(drained) or [DriverStatus(phase=DriverPhase.STOPPED)]
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def statuses(self) -> Iterator[DriverStatus]:
        for step in self._script:
            if "drain" in self.calls:
                break
            yield from _run_step(step)
        if "drain" in self.calls:
            for step in self._drained:
                yield from _run_step(step)

    def drain(self) -> None:
        self.calls.append("drain")

    def stop(self) -> None:
        self.calls.append("stop")


def _run_step(step: ScriptStep) -> Iterator[DriverStatus]:
    if isinstance(step, DriverStatus):
        yield step
    else:
        step()


class RecordingScreen:
    """Records what it has to show."""

    def __init__(self) -> None:
        self.shown: list[tuple[DriverStatus, CopyProgress]] = []
        self.events: list[CopyEvent] = []
        self.messages: list[str] = []

    def show(self, status: DriverStatus, progress: CopyProgress) -> None:
        self.shown.append((status, progress))

    def print_event(self, event: CopyEvent) -> None:
        self.events.append(event)

    def print_message(self, text: str) -> None:
        self.messages.append(text)
