"""Writes task events to the status topic, without late and repeated ones.

Events of a task that was removed, or that another worker runs by now, are ignored. A running task
that reports the same problem again is not written again. Belongs to the herder thread.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sparkmirror.connect.runtime.status.startup_counts import StartupCounts
from sparkmirror.connect.runtime.status.status_writer import StatusWriter
from sparkmirror.connect.runtime.status.task_state_times import TaskStateTimes
from sparkmirror.copy.partition_problems_by_cause import same_causes
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _TaskStates:
    """What is known of the tasks of one connector."""

    count: int | None = None
    """How many tasks the connector has, on all workers; None before the first plan."""
    own: frozenset[int] = frozenset()
    """The tasks that this worker runs. Others report to their own worker."""
    restarting: set[int] = field(default_factory=set)
    running: dict[int, str] = field(default_factory=dict)
    """Tasks whose last status is RUNNING, with their problem: tasks may report every second."""


class TaskStatusWriter:
    """Implements TaskEvents. Belongs to the herder thread."""

    def __init__(
        self,
        statuses: StatusWriter,
        on_removed: Callable[[str], None],
        is_deleted: Callable[[str], bool],
        *,
        tracks_topics: bool,
    ) -> None:
        """`is_deleted` returns whether tasks end because their connector was deleted."""
        self._statuses = statuses
        self._is_deleted = is_deleted
        self._on_removed = on_removed
        self._tracks_topics = tracks_topics
        self._states: defaultdict[str, _TaskStates] = defaultdict(_TaskStates)
        self._is_stopping = False
        self.startups = StartupCounts()
        self.state_times = TaskStateTimes()

    def stop(self) -> None:
        """Keep the statuses from now on: the worker shuts down, and tasks only stop."""
        self._is_stopping = True
        for states in self._states.values():
            states.restarting.clear()

    def on_task_running(self, name: str, task: int, problem: str) -> None:
        """Write RUNNING, with the problem as trace, unless that is the last status.

        The log tells a problem once, however many partitions have it from then on.
        """
        states = self._states[name]
        before = states.running.get(task)
        if task in states.own:
            self.startups.on_started((name, task))
        if task in states.own and before != problem:
            self._write(name, task, LifecycleState.RUNNING, problem or None)
            states.running[task] = problem
            if problem and not same_causes(problem, before or ""):
                log.warning("Task %s-%d has a problem: %s", name, task, problem)
            elif before and not problem:
                log.info("Task %s-%d no longer has the problem: %s", name, task, before)

    def on_task_paused(self, name: str, task: int) -> None:
        """Write PAUSED."""
        if task in self._states[name].own:
            self._write(name, task, LifecycleState.PAUSED)

    def on_task_failed(self, name: str, task: int, trace: str, *, has_started: bool) -> None:
        """Write FAILED with the trace."""
        if task in self._states[name].own:
            self.startups.on_failed((name, task))
            self._write(name, task, LifecycleState.FAILED, trace, has_started=has_started)

    def on_task_stopped(self, name: str, task: int) -> None:
        """Write UNASSIGNED, except during a restart: RESTARTING stays until the task runs."""
        states = self._states[name]
        self.startups.on_stopped((name, task))
        if task in states.own and task not in states.restarting:
            self._write(name, task, LifecycleState.UNASSIGNED)

    def on_task_topics(self, name: str, task: int, topics: Collection[str]) -> None:
        """Record the topics that the task has written to."""
        if self._tracks_topics and task in self._states[name].own:
            self._statuses.record_topics(name, task, topics)

    def on_tasks_restarting(self, name: str, tasks: Collection[int]) -> None:
        """Write UNASSIGNED and then RESTARTING."""
        for task in tasks:
            self.startups.on_stopped((name, task))
            self._write(name, task, LifecycleState.UNASSIGNED)
            self._write(name, task, LifecycleState.RESTARTING)
        self._states[name].restarting.update(tasks)

    def on_task_count(self, name: str, count: int, own: Collection[int]) -> None:
        """Set the tasks of this worker; remove the statuses of tasks with higher numbers."""
        if self._is_stopping:
            return
        states = self._states[name]
        if count != states.count:
            self._statuses.remove_tasks(name, range(count, max(states.count or 0, count)))
        for task in states.own.difference(own):
            self.state_times.on_state(name, task, LifecycleState.UNASSIGNED)
        states.count, states.own = count, frozenset(own)
        states.running = {task: text for task, text in states.running.items() if task in own}

    def on_tasks_removed(self, name: str) -> None:
        """Remove all task statuses and active topics of a connector that was deleted."""
        states = self._states.pop(name, _TaskStates())
        for task in states.own:
            self.startups.on_stopped((name, task))
            self.state_times.on_state(name, task, LifecycleState.UNASSIGNED)
        if self._is_deleted(name) and not self._is_stopping:
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
        states = self._states[name]
        states.restarting.discard(task)
        states.running.pop(task, None)
        self.state_times.on_state(name, task, state)
        self._statuses.put_task(name, task, state, trace, has_started=has_started)
