"""The tasks of a source connector, run as one Spark query by a supervised driver process.

    herder ── start, reassign, pause, resume, restart, stop ──▶ SparkTasks ──▶ Supervisor ──▶ driver
    herder ◀── running (with a remark), paused, failed, stopped ──┘ a status once a second ◀──┘

A plan on the same clusters is handed to the driver that runs; anything else (other clients, other
secrets, exactly-once mode) needs a new driver. Holding still is a plan without tasks: Spark stays
warm. Whatever keeps a partition from being copied is a remark of its task, never hidden.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

from sparkmirror.connect.connector import ExpandedConfig
from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.copy.job import Job
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.engine.status import Phase, Status
from sparkmirror.engine.supervisor import Supervisor
from sparkmirror.errors import DriverLost

log = logging.getLogger(__name__)

HAND_OVER_WITHIN_S = 30.0
"""How long a driver may take to drain before the next one of its connector begins."""
MOST_REASONS = 5


class SparkTasks:
    """A TaskGroup: one thread calls it, one method at a time; another one follows the driver."""

    def __init__(
        self,
        connector: str,
        listener: TaskListener,
        job_of: Callable[[TaskPlan], Job],
        supervise: Callable[[Job], Supervisor],
        saw: Callable[[str, Snapshot], None] = lambda _connector, _snapshot: None,
    ) -> None:
        """`saw` is told where everything stands, once a second."""
        self._saw = saw
        self._connector = connector
        self._listener = listener
        self._job_of = job_of
        self._supervise = supervise
        self._plan: TaskPlan | None = None
        self._job: Job | None = None
        self._is_paused = False
        self._supervisor: Supervisor | None = None
        self._follower: threading.Thread | None = None

    @property
    def status(self) -> Status | None:
        """The latest word of the driver, if there is one."""
        supervisor = self._supervisor
        return supervisor.status if supervisor else None

    # -- from the herder ------------------------------------------------------------------------

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        """Begin; a paused group starts Spark only when it goes on."""
        self._take(plan)
        self._is_paused = paused
        if paused:
            self._tell_paused()
        else:
            self._begin()

    def reassign(self, plan: TaskPlan) -> None:
        """Go on with another plan, in the same driver if it can be."""
        before = self._count()
        old = self._job
        self._take(plan)
        for task in range(self._count(), before):
            self._listener.on_stopped(task)
        if self._is_paused:
            self._tell_paused()
        elif old is None or self._needs_new_driver(old):
            self._end(HAND_OVER_WITHIN_S)
            self._begin()
        else:
            self._replan()

    def pause(self) -> None:
        """Hold still; `on_paused` follows when every lease was given back."""
        self._is_paused = True
        if self._is_driven():
            self._replan()
        else:
            self._tell_paused()

    def resume(self) -> None:
        """Go on."""
        self._is_paused = False
        if self._is_driven():
            self._replan()
        else:
            self._begin()

    def restart(self, tasks: Mapping[int, ExpandedConfig]) -> None:
        """Begin anew; with the configs as they are now. All tasks of the query do together."""
        assert self._plan is not None
        configs = tuple(tasks.get(number, config) for number, config in enumerate(self._plan.tasks))
        old = self._job
        self._take(replace(self._plan, tasks=configs))
        if self._is_paused:
            self._tell_paused()
        elif old is None or not self._is_driven() or self._needs_new_driver(old):
            self._end(HAND_OVER_WITHIN_S)
            self._begin()
        elif self._supervisor is not None:
            self._supervisor.begin_epoch()

    def stop(self, within_s: float) -> None:
        """Drain and end; returns when nothing runs any more."""
        self._end(within_s)
        for task in range(self._count()):
            self._listener.on_stopped(task)

    # -- the driver -----------------------------------------------------------------------------

    def _take(self, plan: TaskPlan) -> None:
        self._plan, self._job = plan, self._job_of(plan)

    def _count(self) -> int:
        return len(self._plan.tasks) if self._plan else 0

    def _is_driven(self) -> bool:
        return self._supervisor is not None and self._supervisor.failure() is None

    def _needs_new_driver(self, old: Job) -> bool:
        """Whether more has changed than which partitions are copied."""
        assert self._job is not None
        same = replace(
            old,
            tasks=self._job.tasks,
            remote_topics=self._job.remote_topics,
            start=self._job.start,
            on_loss=self._job.on_loss,
        )
        return same != self._job or not self._is_driven() or self._job.is_exactly_once

    def _wanted_job(self) -> Job:
        assert self._job is not None
        return replace(self._job, tasks=()) if self._is_paused else self._job

    def _begin(self) -> None:
        supervisor = self._supervisor = self._supervise(self._wanted_job())
        supervisor.start()
        self._follower = threading.Thread(
            target=self._follow, args=(supervisor,), name=f"spark-{self._connector}", daemon=True
        )
        self._follower.start()

    def _replan(self) -> None:
        assert self._supervisor is not None
        self._supervisor.replan(self._wanted_job())

    def _end(self, within_s: float) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        supervisor.drain(within_s)
        supervisor.wait(within_s)
        supervisor.stop()
        if self._follower is not None:
            self._follower.join(timeout=within_s)

    # -- what becomes of it ---------------------------------------------------------------------

    def _follow(self, supervisor: Supervisor) -> None:
        for status in supervisor.statuses():
            if supervisor is not self._supervisor:
                return  # told to end: whoever told it tells what became of the tasks
            self._saw(self._connector, status.snapshot)
            self._tell(status)
        failure = supervisor.failure()
        if supervisor is self._supervisor:
            error = failure or DriverLost("the Spark driver has ended without being asked to")
            for task in range(self._count()):
                self._listener.on_failed(task, error)

    def _tell(self, status: Status) -> None:
        if status.phase is Phase.FAILED:
            return  # told when it is certain that there is no further try
        if self._is_paused:
            if status.tasks == 0 and not status.snapshot.partitions:
                self._tell_paused()
            return
        if status.tasks != self._count() and status.phase is Phase.RUNNING:
            return  # the driver has not heard of the plan yet
        if status.phase is Phase.STARTING and not status.trouble:
            return
        remarks = remarks_of(status.snapshot)
        for task in range(self._count()):
            said = [text for text in (status.trouble, remarks.get(task, "")) if text]
            self._listener.on_running(task, "; ".join(said))
        for task, topics in topics_of(status.snapshot).items():
            self._listener.on_topics(task, topics)

    def _tell_paused(self) -> None:
        for task in range(self._count()):
            self._listener.on_paused(task)


def remarks_of(snapshot: Snapshot) -> dict[int, str]:
    """What keeps partitions from being copied, by task: the first few, and how many more."""
    by_task: dict[int, list[str]] = defaultdict(list)
    for partition, view in snapshot.partitions.items():
        if view.reason:
            by_task[view.task].append(f"{partition}: {view.reason}")
    remarks = {}
    for task, reasons in by_task.items():
        more = len(reasons) - MOST_REASONS
        shown = reasons[:MOST_REASONS] + ([f"and {more} more partitions"] if more > 0 else [])
        remarks[task] = "; ".join(shown)
    return remarks


def topics_of(snapshot: Snapshot) -> dict[int, set[str]]:
    """The remote topics that something was copied to, by task."""
    by_task: dict[int, set[str]] = defaultdict(set)
    for view in snapshot.partitions.values():
        if view.records:
            by_task[view.task].add(view.remote)
    return by_task
