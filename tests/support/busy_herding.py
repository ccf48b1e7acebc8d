"""A worker that takes its time: each question waits until the test lets it go."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sparkmirror.connect.herding import ConnectorInfo, Health
from tests.support.scripted_herding import ScriptedHerding


class BusyHerding(ScriptedHerding):
    """Answers `connectors` and `health` only once `release` was called; `info` fails oddly."""

    def __init__(self) -> None:
        super().__init__()
        self._released = threading.Event()
        self.waiting = threading.Semaphore(0)
        """Counts the questions that have arrived."""

    def release(self) -> None:
        """Let every question be answered, now and later."""
        self._released.set()

    def connectors(self) -> Sequence[str]:
        self.waiting.release()
        self._released.wait(30)
        return ["at last"]

    def health(self) -> Health:
        self.waiting.release()
        self._released.wait(30)
        return Health(status="healthy", message="well again")

    def info(self, name: str) -> ConnectorInfo:
        raise KeyError("a secret of the implementation")
