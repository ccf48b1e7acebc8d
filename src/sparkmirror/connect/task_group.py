"""The tasks of one connector as one group: a Spark query, or threads of the worker.

    herder ── start, reassign, pause, resume, restart, stop ──▶ TaskGroup   (the tasks' thread)
    herder ◀── on_running, on_paused, on_failed, on_stopped, on_topics ── TaskListener (any thread)

The group reports the state of each task; the herder writes only reported states to the status
topic. A partition that makes no progress is reported: as a problem of a running task, or a failure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.connect.connector import ExpandedConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """The configs of one connector's tasks. Contains secrets: keep it in memory."""

    connector: str
    """The connector's name."""
    config: ExpandedConfig = field(repr=False)
    """The connector's config."""
    tasks: Mapping[int, ExpandedConfig] = field(repr=False)
    """The configs of the tasks that this worker runs, by task number; empty only to prepare."""
    task_count: int
    """How many tasks the connector has, on all workers together."""
    generation: int
    """Counts the sets of task configs. A task of an older set is a zombie."""

    def __post_init__(self) -> None:
        assert all(0 <= task < self.task_count for task in self.tasks), "no task of the connector"


class TaskListener(Protocol):
    """Receives the states of tasks. Any thread may call; no method blocks."""

    def on_running(self, task: int, problem: str = "") -> None:
        """The task runs. The status shows `problem` (`orders-3 held: ...`).

        Report again whenever the problem changes; an empty text means that it is solved.
        """
        ...

    def on_paused(self, task: int) -> None:
        """The task is paused and has released its partitions."""
        ...

    def on_failed(self, task: int, error: BaseException) -> None:
        """The task has ended and needs a restart; other tasks keep running."""
        ...

    def on_stopped(self, task: int) -> None:
        """The task has ended on request."""
        ...

    def on_topics(self, task: int, topics: Collection[str]) -> None:
        """The task has written to these topics of the target. Repeated reports cost nothing."""
        ...


class TaskGroup(Protocol):
    """Runs the tasks. One thread calls it, one method at a time.

    An error of a method makes all tasks FAILED. The order of calls is
    start, (reassign | pause | resume | restart)*, stop.
    """

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        """Start. `on_running` (or `on_paused`) follows for each task."""
        ...

    def reassign(self, plan: TaskPlan) -> None:
        """Continue with another plan, if possible without interrupting unchanged work.

        `on_stopped` follows for removed tasks, `on_running` (or `on_paused`) for all others.
        Failed tasks start again.
        """
        ...

    def pause(self) -> None:
        """Pause. `on_paused` follows for each task that has not failed."""
        ...

    def resume(self) -> None:
        """Resume. `on_running` follows for each task that has not failed."""
        ...

    def restart(self, plan: TaskPlan, tasks: Collection[int]) -> None:
        """Restart these tasks of the plan, failed or not. Its secrets were fetched again."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Drain and stop. Blocks until no task runs, at most `timeout_s`."""
        ...


class TaskPreparation(Protocol):
    """Gets ready for tasks of connectors that may come to this worker soon. Any thread calls it."""

    def prepare(self, plan: TaskPlan) -> None:
        """Do what a start of tasks would have to do first. Starts and writes nothing.

        The plan has no task. A later start uses what was prepared if it fits. Raises MirrorError.
        """
        ...

    def is_ready(self, connector: str) -> bool:
        """Whether the connector is prepared, or cannot be prepared soon. Does not block."""
        ...

    def forget(self, connector: str) -> None:
        """Drop what was prepared for a connector, unless a start has used it."""
        ...
