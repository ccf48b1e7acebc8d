"""The tasks of a source connector, run as one Spark query by a supervised driver process.

    herder ─ start, reassign, pause, resume, restart, stop ─▶ SparkTaskGroup ─▶ supervisor ─▶ driver
    herder ◀─ running (with a problem), paused, failed, stopped ─┘ ◀─ a status once a second ─┘

The running driver takes over a new plan on the same clusters. Any other change (client properties,
secrets, exactly-once mode) needs a new driver. A pause is a plan without tasks: Spark keeps running
and can resume quickly. The task status has a problem for every partition that is not copied.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace

from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.copy.causes import cause_texts, first_causes
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import SPARK_STARTS, CopySnapshot
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.errors import DriverLost
from sparkmirror.worker.monitoring import FlowMonitor

log = logging.getLogger(__name__)

HANDOVER_TIMEOUT_S = 30.0
"""How long a driver may take to drain before the next one of its connector begins."""


class SparkTaskGroup:
    """A TaskGroup. One thread calls its methods; a thread of its own follows the driver."""

    def __init__(
        self,
        connector: str,
        listener: TaskListener,
        to_job: Callable[[TaskPlan], CopyJob],
        create_supervisor: Callable[[CopyJob], DriverSupervisor],
        monitor: FlowMonitor,
    ) -> None:
        """`monitor` gets the plan, every request and every status of the driver."""
        self._monitor = monitor
        self._connector = connector
        self._listener = listener
        self._to_job = to_job
        self._create_supervisor = create_supervisor
        self._plan: TaskPlan | None = None
        self._job: CopyJob | None = None
        self._is_paused = False
        self._had_start_problem = False
        """Whether the last reported status was the problem of a driver that starts."""
        self._supervisor: DriverSupervisor | None = None
        self._status_thread: threading.Thread | None = None

    @property
    def status(self) -> DriverStatus | None:
        """The latest status of the driver, if there is one."""
        supervisor = self._supervisor
        return supervisor.status if supervisor else None

    # -- from the herder ------------------------------------------------------------------------

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        """Start. A paused group starts Spark only when it is resumed."""
        self._set_plan(plan)
        self._set_paused(paused)
        if paused:
            self._report_paused()
        else:
            self._start_driver()

    def reassign(self, plan: TaskPlan) -> None:
        """Continue with another plan, in the same driver if possible."""
        before, old = self._tasks(), self._job
        self._set_plan(plan)
        for task in sorted(before - self._tasks()):
            self._listener.on_stopped(task)
        if self._is_paused:
            self._report_paused()
        elif old is None or self._needs_new_driver(old):
            self._stop_driver(HANDOVER_TIMEOUT_S)
            self._start_driver()
        else:
            self._replan()

    def pause(self) -> None:
        """Pause. `on_paused` follows when every lease was given back."""
        self._set_paused(True)
        if self._has_driver():
            self._replan()
        else:
            self._report_paused()

    def resume(self) -> None:
        """Resume, in the running driver if there is one."""
        self._set_paused(False)
        if self._has_driver():
            self._replan()
        else:
            self._start_driver()

    def restart(self, plan: TaskPlan, tasks: Collection[int]) -> None:
        """Restart with the plan. All tasks of the connector restart together."""
        old = self._job
        self._set_plan(plan)
        if self._is_paused:
            self._report_paused()
        elif old is None or not self._has_driver() or self._needs_new_driver(old):
            self._stop_driver(HANDOVER_TIMEOUT_S)
            self._start_driver()
        elif self._supervisor is not None:
            self._supervisor.start_next_epoch()

    def stop(self, timeout_s: float) -> None:
        """Drain and end the driver; returns when no process is left."""
        self._stop_driver(timeout_s)
        self._monitor.on_driver_ended(self._connector)
        for task in sorted(self._tasks()):
            self._listener.on_stopped(task)

    # -- the driver -----------------------------------------------------------------------------

    def _set_plan(self, plan: TaskPlan) -> None:
        self._plan, self._job = plan, self._to_job(plan)
        self._monitor.on_plan(self._connector, self._job)

    def _set_paused(self, paused: bool) -> None:
        self._is_paused = paused
        (self._monitor.on_paused if paused else self._monitor.on_running)(self._connector)

    def _tasks(self) -> frozenset[int]:
        return frozenset(self._plan.tasks if self._plan else ())

    def _has_driver(self) -> bool:
        return self._supervisor is not None and self._supervisor.failure() is None

    def _needs_new_driver(self, old: CopyJob) -> bool:
        """Whether more has changed than the partitions and how they start."""
        assert self._job is not None
        same = replace(
            old,
            tasks=self._job.tasks,
            task_count=self._job.task_count,
            remote_topics=self._job.remote_topics,
            start=self._job.start,
            on_loss=self._job.on_loss,
        )
        return same != self._job or not self._has_driver() or self._job.is_exactly_once

    def _desired_job(self) -> CopyJob:
        assert self._job is not None
        return replace(self._job, tasks={}) if self._is_paused else self._job

    def _start_driver(self) -> None:
        supervisor = self._supervisor = self._create_supervisor(self._desired_job())
        supervisor.start()
        self._status_thread = threading.Thread(
            target=self._follow_statuses,
            args=(supervisor,),
            name=f"driver-status-{self._connector}",
            daemon=True,
        )
        self._status_thread.start()

    def _replan(self) -> None:
        assert self._supervisor is not None
        self._supervisor.replan(self._desired_job())

    def _stop_driver(self, within_s: float) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        supervisor.drain(within_s)
        supervisor.wait(within_s)
        supervisor.stop()
        if self._status_thread is not None:
            self._status_thread.join(timeout=within_s)

    # -- statuses -------------------------------------------------------------------------------

    def _follow_statuses(self, supervisor: DriverSupervisor) -> None:
        for status in supervisor.statuses():
            if supervisor is not self._supervisor:
                return  # the thread that ends the driver reports the tasks
            self._monitor.on_status(self._connector, status)
            self._report_status(status)
        failure = supervisor.failure()
        if supervisor is self._supervisor:
            error = failure or DriverLost("the Spark driver has ended without a request")
            self._monitor.on_driver_ended(self._connector, str(error))
            for task in sorted(self._tasks()):
                self._listener.on_failed(task, error)

    def _report_status(self, status: DriverStatus) -> None:
        if status.phase is DriverPhase.FAILED:
            return  # reported when the supervisor has given up
        if self._is_paused:
            if status.tasks == 0 and not status.snapshot.partitions:
                self._report_paused()
            return
        if status.tasks != len(self._tasks()) and status.phase is DriverPhase.RUNNING:
            return  # the driver has not read the plan yet
        is_starting, problem = status.phase is DriverPhase.STARTING, status.problem
        if is_starting and not problem:
            if not self._had_start_problem:
                return  # UNASSIGNED, or RUNNING with the end of the driver before
            problem = SPARK_STARTS
        self._had_start_problem = is_starting and bool(status.problem)
        by_task = problems_by_task(status.snapshot, except_for=problem)
        for task in sorted(self._tasks()):
            texts = [text for text in (problem, by_task.get(task, "")) if text]
            self._listener.on_running(task, "; ".join(texts))
        for task, topics in topics_by_task(status.snapshot).items():
            self._listener.on_topics(task, topics)

    def _report_paused(self) -> None:
        for task in sorted(self._tasks()):
            self._listener.on_paused(task)


def problems_by_task(snapshot: CopySnapshot, except_for: str = "") -> dict[int, str]:
    """Why partitions are not copied, by task: one text per cause.

    Leaves out a reason that `except_for` contains: the status has it already.
    """
    by_task: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for partition, view in snapshot.partitions.items():
        if view.reason and view.reason not in except_for:
            by_task[view.task].append((partition, view.reason))
    return {
        task: "; ".join(first_causes(cause_texts(reasons))) for task, reasons in by_task.items()
    }


def topics_by_task(snapshot: CopySnapshot) -> dict[int, set[str]]:
    """The remote topics with copied records, by task."""
    by_task: dict[int, set[str]] = defaultdict(set)
    for view in snapshot.partitions.values():
        if view.records:
            by_task[view.task].add(view.remote)
    return by_task
