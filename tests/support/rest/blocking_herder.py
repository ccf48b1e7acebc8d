"""A herder whose calls block until the test releases them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sparkmirror.connect.herder.herder import ConnectorInfo, StateInfo, TaskInfo, WorkerStatus
from tests.support.rest.scripted_herder import ScriptedHerder


class BlockingHerder(ScriptedHerder):
    """`connectors` and `health` block until `release`; `connector_info` raises KeyError.

    Reads wait, unless a test sets `is_read`; `task_status` and `task_configs` return at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self._released = threading.Event()
        self.is_read = False
        self.pending_calls = threading.Semaphore(0)
        """Released once per call that has arrived."""

    def release(self) -> None:
        """Let all calls return, current and later ones."""
        self._released.set()

    def reads_from_memory(self) -> bool:
        return self.is_read

    def task_status(self, name: str, task: int) -> StateInfo:
        return StateInfo(state="RUNNING", worker_id="w:1", version=None)

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        return []

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
