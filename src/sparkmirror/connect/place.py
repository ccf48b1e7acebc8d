"""One connector's place on this worker: its two threads, and what was last asked of them.

A place is asked for by comparison: whatever differs from what was asked before is asked. A thread
that does not let go in time is given up and replaced; so a connector that hangs can be changed,
stopped and deleted. Belongs to the herder's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from sparkmirror.connect.connector_run import ConnectorEvents, ConnectorRun, ConnectorWish
from sparkmirror.connect.errands import Errands
from sparkmirror.connect.expansion import Expander
from sparkmirror.connect.kinds import ConnectorKinds
from sparkmirror.connect.reports import ConnectorReports, TaskReports
from sparkmirror.connect.task_run import TaskEvents, TaskRun, TaskWish
from sparkmirror.mirror.connect_configs import Properties, TargetState

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What connectors and tasks are run with."""

    kinds: ConnectorKinds
    expander: Expander
    errands: Errands
    stop_within_s: float
    fence: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the config topic says about one connector."""

    properties: Properties
    state: TargetState
    tasks: tuple[Properties, ...]
    generation: int


@dataclass(slots=True)
class Planning:
    """When to ask a connector for its tasks, and why it could not say."""

    applied: Properties | None = None
    """The connector's properties when its present tasks were planned."""
    is_under_way: bool = False
    is_due_again: bool = False
    remark: str = ""
    pause_s: float = FIRST_PAUSE_S

    def next_pause_s(self) -> float:
        """How long to wait before the next try; it doubles."""
        pause_s, self.pause_s = self.pause_s, min(self.pause_s * 2, LONGEST_PAUSE_S)
        return pause_s

    def succeeded(self) -> None:
        """It could say: nothing to remark."""
        self.remark, self.pause_s = "", FIRST_PAUSE_S


class Place:
    """One connector, from the moment it is known until nothing of it is left."""

    def __init__(
        self, name: str, means: Means, events: ConnectorEvents, task_events: TaskEvents
    ) -> None:
        self.name = name
        self.planning = Planning()
        self.most_tasks = 0
        """The most there ever were: Connect remembers the configs of them all."""
        self.waiting: list[Future[None]] = []
        """Those who wait for the connector to have started anew."""
        self.is_leaving = False
        self.has_failed = False
        """Whether the connector, not its tasks, has failed."""
        self._means = means
        self._events = events
        self._task_events = task_events
        self._turn = 0
        self._is_restarting = False
        self._wish: ConnectorWish | None = None
        self._task_wish: TaskWish | None = None
        self._left = {"connector": False, "tasks": False}
        self._reports, self._run = self._make_run()
        self._task_reports = TaskReports(means.errands, task_events)
        self._tasks = TaskRun(
            name, means.kinds, means.expander, self._task_reports,
            stop_within_s=means.stop_within_s, fence=means.fence,
        )  # fmt: skip

    def want(self, wanted: Wanted) -> None:
        """Have it so."""
        assert not self.is_leaving
        self._want_connector(
            ConnectorWish(
                properties=wanted.properties,
                state=wanted.state,
                turn=self._turn,
                restarting=self._is_restarting,
            )
        )
        wish = TaskWish(
            connector=wanted.properties,
            tasks=() if wanted.state is TargetState.STOPPED else wanted.tasks,
            generation=wanted.generation,
            paused=wanted.state is TargetState.PAUSED,
        )
        self.most_tasks = max(self.most_tasks, len(wish.tasks))
        if wish != self._task_wish:
            self._task_wish = wish
            self._tasks.want(wish)

    def begin_anew(self, *, restarting: bool = False) -> None:
        """Let the next `want` start another instance of the connector."""
        self._turn += 1
        self._is_restarting = restarting

    def restart_all_tasks(self) -> None:
        """Begin all tasks anew."""
        if self._task_wish is not None:
            self._tasks.restart(range(len(self._task_wish.tasks)))

    def restart_tasks(self, tasks: Collection[int], done: Callable[[], None] | None = None) -> None:
        """Begin these tasks anew."""
        self._tasks.restart(tasks, done)

    def between_tasks(self, job: Callable[[], None]) -> None:
        """Have something done by the thread that starts and stops the tasks."""
        self._tasks.between(job)

    def plan(self) -> None:
        """Ask the connector for its tasks, once more if it is just being asked."""
        if self.planning.is_under_way:
            self.planning.is_due_again = True
        else:
            self.planning.is_under_way = True
            self._run.plan()

    def planned(self) -> None:
        """The connector has answered."""
        self.planning.is_under_way = False
        if self.planning.is_due_again:
            self.planning.is_due_again = False
            self.plan()

    def is_wished(self, wish: ConnectorWish) -> bool:
        """Say whether that is still what is wanted."""
        return self._wish == wish

    def release(self) -> None:
        """End everything. `connector_gone` and `tasks_gone` follow."""
        if self.is_leaving:
            return
        self.is_leaving = True
        self._want_connector(None)
        self._tasks.want(None)
        self._means.errands.later(2 * self._means.stop_within_s, self._check_tasks)

    def left(self, part: str) -> bool:
        """Note that the connector, or its tasks, are gone; say whether both are."""
        (self._reports if part == "connector" else self._task_reports).mute()
        self._left[part] = True
        return all(self._left.values())

    def runs(self) -> tuple[ConnectorRun, TaskRun]:
        """Whose end may be waited for."""
        return self._run, self._tasks

    def _make_run(self) -> tuple[ConnectorReports, ConnectorRun]:
        reports = ConnectorReports(self._means.errands, self._events)
        return reports, ConnectorRun(self.name, self._means.kinds, self._means.expander, reports)

    def _want_connector(self, wish: ConnectorWish | None) -> None:
        if wish == self._wish and wish is not None:
            return
        self._wish = wish
        self.planning.is_under_way = self.planning.is_due_again = False
        number = self._run.want(wish)
        check = partial(self._check_connector, self._run, number)
        self._means.errands.later(self._means.stop_within_s, check)

    def _check_connector(self, run: ConnectorRun, number: int) -> None:
        """Replace the connector's thread if it hangs."""
        if run is not self._run or run.has_let_go(number):
            return
        log.error(
            "Connector '%s' failed to properly shut down, has become unresponsive, and may be "
            "consuming external resources. Correct the configuration for this connector or remove "
            "the connector. After fixing the connector, it may be necessary to restart this "
            "worker to release any consumed resources.",
            self.name,
        )
        self._reports.mute()
        run.give_up()
        wish = self._wish
        self._events.connector_ended(self.name, restarting=wish is not None and wish.restarting)
        if wish is None:
            self._events.connector_gone(self.name)
        else:
            self._reports, self._run = self._make_run()
            self._wish = None
            self._want_connector(wish)

    def _check_tasks(self) -> None:
        """Stop waiting for tasks that do not end."""
        if not self._left["tasks"]:
            log.error("Graceful stop of tasks of %s failed.", self.name)
            self._task_reports.mute()
            self._task_events.tasks_gone(self.name)
