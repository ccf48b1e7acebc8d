"""All tasks of one connector, run together: as one Spark query, or as threads of the worker.

    herder ── start, reassign, pause, resume, restart, stop ──▶ TaskGroup   (the connector's thread)
    herder ◀── on_running, on_paused, on_failed, on_stopped, on_topics ── TaskListener (any thread)

The group says what became of each task; only what was said is written to the status topic. A
partition that makes no progress is said: with a remark while the task runs, or as a failure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.connect.connector import ExpandedConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """What the tasks of one connector are to do. Holds secrets: keep it in memory."""

    connector: str
    """Its name."""
    config: ExpandedConfig = field(repr=False)
    """The connector's own config."""
    tasks: tuple[ExpandedConfig, ...] = field(repr=False)
    """Task i's config at place i; never empty."""
    generation: int
    """Counts the sets of task configs: a task of an older set is a zombie."""


class TaskListener(Protocol):
    """Who wants to know how tasks are doing. Any thread may call; nothing here blocks."""

    def on_running(self, task: int, remark: str = "") -> None:
        """It works. `remark` says what does not (`orders-3 held: ...`), and is shown to people.

        Say it again whenever the remark changes; an empty one means that all is well again.
        """
        ...

    def on_paused(self, task: int) -> None:
        """It holds still and has given everything back."""
        ...

    def on_failed(self, task: int, error: BaseException) -> None:
        """It has ended and will not come back unless restarted; others go on."""
        ...

    def on_stopped(self, task: int) -> None:
        """It has ended because it was told to."""
        ...

    def on_topics(self, task: int, topics: Collection[str]) -> None:
        """It has written to these topics (as the target names them). Repeating them is free."""
        ...


class TaskGroup(Protocol):
    """What runs the tasks. One thread calls it, one method at a time.

    A method that raises makes every task FAILED that it was about. Lives through one series of
    start, (reassign | pause | resume | restart)*, stop.
    """

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        """Begin. `on_running` (or `on_paused`) follows for each task, when it is so."""
        ...

    def reassign(self, plan: TaskPlan) -> None:
        """Go on with another plan, at best without interrupting what stays the same.

        Tasks that are no more get `on_stopped`; all others `on_running` (or `on_paused`) anew.
        Failed tasks start again.
        """
        ...

    def pause(self) -> None:
        """Hold still: `on_paused` follows for each task that has not failed."""
        ...

    def resume(self) -> None:
        """Go on: `on_running` follows for each task that has not failed."""
        ...

    def restart(self, tasks: Mapping[int, ExpandedConfig]) -> None:
        """Begin these tasks anew, failed or not, with configs whose secrets were fetched again."""
        ...

    def stop(self, within_s: float) -> None:
        """Drain and end; returns when no task runs, at the latest after `within_s`."""
        ...
