"""An engine that follows a script instead of copying, and a screen that remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sparkmirror.cli.copy_meter import Progress
from sparkmirror.copy.snapshot import Event
from sparkmirror.engine.status import Phase, Status

Line = Status | Callable[[], None]
"""A status to report, or something that happens before the next one."""


class ScriptedEngine:
    """Reports the statuses of a script; after a drain those of another."""

    def __init__(self, script: Iterable[Line], drained: Iterable[Line] = ()) -> None:
        self._script = list(script)
        self._drained = list(drained) or [Status(phase=Phase.STOPPED)]
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def statuses(self) -> Iterator[Status]:
        for line in self._script:
            if "drain" in self.calls:
                break
            yield from _reported(line)
        if "drain" in self.calls:
            for line in self._drained:
                yield from _reported(line)

    def drain(self) -> None:
        self.calls.append("drain")

    def stop(self) -> None:
        self.calls.append("stop")


def _reported(line: Line) -> Iterator[Status]:
    if isinstance(line, Status):
        yield line
    else:
        line()


class Notes:
    """A screen for tests."""

    def __init__(self) -> None:
        self.shown: list[tuple[Status, Progress]] = []
        self.events: list[Event] = []
        self.said: list[str] = []

    def show(self, status: Status, progress: Progress) -> None:
        self.shown.append((status, progress))

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def say(self, text: str) -> None:
        self.said.append(text)
