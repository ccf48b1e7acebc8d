"""What is said about tasks, brought into order and written down.

Reports come from many threads and may be late or repeated: what concerns a task that is no more is
not written, nor what was said just now. Belongs to the herder's thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sparkmirror.connect.runtime.status_writer import StatusWriter
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState


@dataclass(slots=True)
class _TaskStates:
    """What was said about the tasks of one connector."""

    count: int = 0
    restarting: set[int] = field(default_factory=set)
    running: dict[int, str] = field(default_factory=dict)
    """Tasks last said to run, with the remark: who says so every second need not be written."""


class TaskStatusWriter:
    """TaskEvents, heard in the herder's thread."""

    def __init__(
        self, statuses: StatusWriter, on_gone: Callable[[str], None], *, tracks_topics: bool
    ) -> None:
        self._statuses = statuses
        self._on_removed = on_gone
        self._tracks_topics = tracks_topics
        self._states: defaultdict[str, _TaskStates] = defaultdict(_TaskStates)
        self._is_stopping = False

    def stop(self) -> None:
        """The worker ends: tasks are stopped, but not to be forgotten."""
        self._is_stopping = True
        for account in self._states.values():
            account.restarting.clear()

    def on_task_running(self, name: str, task: int, remark: str) -> None:
        """It works; a remark says what does not."""
        account = self._states[name]
        if task < account.count and account.running.get(task) != remark:
            self._write(name, task, LifecycleState.RUNNING, remark or None)
            account.running[task] = remark

    def on_task_paused(self, name: str, task: int) -> None:
        """It holds still."""
        if task < self._states[name].count:
            self._write(name, task, LifecycleState.PAUSED)

    def on_task_failed(self, name: str, task: int, told: str, *, has_started: bool) -> None:
        """It has ended and will not come back by itself."""
        if task < self._states[name].count:
            self._write(name, task, LifecycleState.FAILED, told, has_started=has_started)

    def on_task_stopped(self, name: str, task: int) -> None:
        """It has ended because it was told to; that is no news while it is begun anew."""
        account = self._states[name]
        if task < account.count and task not in account.restarting:
            self._write(name, task, LifecycleState.UNASSIGNED)

    def on_task_topics(self, name: str, task: int, topics: Collection[str]) -> None:
        """It has written to these topics."""
        if self._tracks_topics and task < self._states[name].count:
            self._statuses.record_topics(name, task, topics)

    def on_tasks_restarting(self, name: str, tasks: Collection[int]) -> None:
        """They are about to be begun anew."""
        for task in tasks:
            self._write(name, task, LifecycleState.UNASSIGNED)
            self._write(name, task, LifecycleState.RESTARTING)
        self._states[name].restarting.update(tasks)

    def on_task_count(self, name: str, count: int) -> None:
        """There are so many tasks; what is known of others is forgotten."""
        if self._is_stopping:
            return
        account = self._states[name]
        self._statuses.remove_tasks(name, range(count, max(account.count, count)))
        account.count = count
        account.running = {task: said for task, said in account.running.items() if task < count}

    def on_tasks_removed(self, name: str) -> None:
        """Nothing is to follow."""
        self._states.pop(name, None)
        if not self._is_stopping:
            self._statuses.remove_topics(name)
            self._statuses.remove_tasks(name, range(0))
        self._on_removed(name)

    def _write(
        self,
        name: str,
        task: int,
        state: LifecycleState,
        trace: str | None = None,
        *,
        has_started: bool = True,
    ) -> None:
        account = self._states[name]
        account.restarting.discard(task)
        account.running.pop(task, None)
        self._statuses.put_task(name, task, state, trace, has_started=has_started)
