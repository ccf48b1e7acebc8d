"""What is said about tasks, brought into order and written down.

Reports come from many threads and may be late or repeated: what concerns a task that is no more is
not written, nor what was said just now. Belongs to the herder's thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sparkmirror.connect.statuses import StatusBook
from sparkmirror.mirror.connect_statuses import State


@dataclass(slots=True)
class _Account:
    """What was said about the tasks of one connector."""

    count: int = 0
    under_restart: set[int] = field(default_factory=set)
    running: dict[int, str] = field(default_factory=dict)
    """Tasks last said to run, with the remark: who says so every second need not be written."""


class TaskAccounts:
    """TaskEvents, heard in the herder's thread."""

    def __init__(
        self, statuses: StatusBook, on_gone: Callable[[str], None], *, tracks_topics: bool
    ) -> None:
        self._statuses = statuses
        self._on_gone = on_gone
        self._tracks_topics = tracks_topics
        self._accounts: defaultdict[str, _Account] = defaultdict(_Account)
        self._is_leaving = False

    def leave(self) -> None:
        """The worker ends: tasks are stopped, but not to be forgotten."""
        self._is_leaving = True
        for account in self._accounts.values():
            account.under_restart.clear()

    def task_running(self, name: str, task: int, remark: str) -> None:
        """It works; a remark says what does not."""
        account = self._accounts[name]
        if task < account.count and account.running.get(task) != remark:
            self._say(name, task, State.RUNNING, remark or None)
            account.running[task] = remark

    def task_paused(self, name: str, task: int) -> None:
        """It holds still."""
        if task < self._accounts[name].count:
            self._say(name, task, State.PAUSED)

    def task_failed(self, name: str, task: int, told: str, *, has_started: bool) -> None:
        """It has ended and will not come back by itself."""
        if task < self._accounts[name].count:
            self._say(name, task, State.FAILED, told, has_started=has_started)

    def task_stopped(self, name: str, task: int) -> None:
        """It has ended because it was told to; that is no news while it is begun anew."""
        account = self._accounts[name]
        if task < account.count and task not in account.under_restart:
            self._say(name, task, State.UNASSIGNED)

    def task_used(self, name: str, task: int, topics: Collection[str]) -> None:
        """It has written to these topics."""
        if self._tracks_topics and task < self._accounts[name].count:
            self._statuses.use(name, task, topics)

    def tasks_restarting(self, name: str, tasks: Collection[int]) -> None:
        """They are about to be begun anew."""
        for task in tasks:
            self._say(name, task, State.UNASSIGNED)
            self._say(name, task, State.RESTARTING)
        self._accounts[name].under_restart.update(tasks)

    def tasks_are(self, name: str, count: int) -> None:
        """There are so many tasks; what is known of others is forgotten."""
        if self._is_leaving:
            return
        account = self._accounts[name]
        self._statuses.forget_tasks(name, range(count, max(account.count, count)))
        account.count = count
        account.running = {task: said for task, said in account.running.items() if task < count}

    def tasks_gone(self, name: str) -> None:
        """Nothing is to follow."""
        self._accounts.pop(name, None)
        if not self._is_leaving:
            self._statuses.forget_topics(name)
            self._statuses.forget_tasks(name, range(0))
        self._on_gone(name)

    def _say(
        self,
        name: str,
        task: int,
        state: State,
        trace: str | None = None,
        *,
        has_started: bool = True,
    ) -> None:
        account = self._accounts[name]
        account.under_restart.discard(task)
        account.running.pop(task, None)
        self._statuses.task(name, task, state, trace, has_started=has_started)
