"""A worker that takes its time: each question waits until the test lets it go."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sparkmirror.connect.herder.herder import ConnectorInfo, WorkerStatus
from tests.support.rest.scripted_herder import ScriptedHerder


class BlockingHerder(ScriptedHerder):
    """Answers `connectors` and `health` only once `release` was called; `info` fails oddly."""

    def __init__(self) -> None:
        super().__init__()
        self._released = threading.Event()
        self.pending_calls = threading.Semaphore(0)
        """Counts the questions that have arrived."""

    def release(self) -> None:
        """Let every question be answered, now and later."""
        self._released.set()

    def connectors(self) -> Sequence[str]:
        self.pending_calls.release()
        self._released.wait(30)
        return ["at last"]

    def health(self) -> WorkerStatus:
        self.pending_calls.release()
        self._released.wait(30)
        return WorkerStatus(status="healthy", message="well again")

    def connector_info(self, name: str) -> ConnectorInfo:
        raise KeyError("a secret of the implementation")
