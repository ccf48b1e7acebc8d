"""The tasks of a source connector: one job of a Spark application of the worker.

    herder ─ start, reassign, pause, resume, restart, stop ─▶ SparkTaskGroup ─▶ job ─▶ driver
    herder ◀─ running (with a problem), paused, failed, stopped ─┘ ◀─ statuses ─┘

The running job takes over a new plan on the same clusters. Any other change (client properties,
secrets, exactly-once mode, another name of a remote topic) ends the job and starts another one, in
the same application. A pause is a plan without tasks. The task status has a problem for every
partition that is not copied.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.partition_problems_by_cause import cause_texts, first_causes
from sparkmirror.copy.snapshot import SPARK_STARTS, CopySnapshot
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.supervised_job import SupervisedJob
from sparkmirror.errors import DriverLost
from sparkmirror.logging_context import ContextThread
from sparkmirror.worker.connector_progress import FlowMonitor
from sparkmirror.worker.group.membership_renewals import MembershipRenewals
from sparkmirror.worker.spark.copy_job_comparison import is_same_but_for_tasks
from sparkmirror.worker.spark.spark_settings import own_spark_conf

log = logging.getLogger(__name__)

HANDOVER_TIMEOUT_S = 30.0
"""How long a job may take to drain before the next one of its connector begins."""
GIVEN_BACK_POLL_S = 0.05


class SparkTaskGroup:
    """A TaskGroup. One thread calls its methods; a thread of its own follows the job."""

    def __init__(
        self,
        connector: str,
        listener: TaskListener,
        to_job: Callable[[TaskPlan], CopyJob],
        start_job: Callable[[CopyJob, Mapping[str, str]], SupervisedJob],
        monitor: FlowMonitor,
        renewals: MembershipRenewals,
    ) -> None:
        """`start_job` starts a job, with the Spark settings of its connector.

        `monitor` gets the plan, every request and every status of the job. `renewals` tell the
        job about the membership of the worker.
        """
        self._monitor = monitor
        self._renewals = renewals
        self._connector = connector
        self._listener = listener
        self._to_job = to_job
        self._start_job = start_job
        self._plan: TaskPlan | None = None
        self._job: CopyJob | None = None
        self._sent_job: CopyJob | None = None
        """The last plan that the running job has got, with its tasks also during a pause."""
        self._sent_names: dict[str, tuple[str, str]] = {}
        """The `remote_names` of all topics that the running job has or had."""
        self._is_paused = False
        self._had_start_problem = False
        """Whether the last reported status was the problem of a job that starts."""
        self._running: SupervisedJob | None = None
        self._status_thread: threading.Thread | None = None

    @property
    def status(self) -> DriverStatus | None:
        """The latest status of the job, if it runs."""
        running = self._running
        return running.status if running else None

    @property
    def running(self) -> SupervisedJob | None:
        """The job that runs, if there is one."""
        return self._running

    # -- from the herder ------------------------------------------------------------------------

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        """Start. A paused group starts Spark only when it is resumed."""
        self._set_plan(plan)
        self._set_paused(paused)
        if paused:
            self._report_paused()
        else:
            self._start()

    def reassign(self, plan: TaskPlan) -> None:
        """Continue with another plan, in the same job if possible."""
        before = self._tasks()
        self._set_plan(plan)
        removed = sorted(before - self._tasks())
        if self._is_paused:
            self._report_paused()
        elif self._needs_new_job():
            self._end(HANDOVER_TIMEOUT_S)
            self._start()
        else:
            self._replan()
            if removed:
                self._await_given_back(HANDOVER_TIMEOUT_S)
        for task in removed:
            self._listener.on_stopped(task)

    def pause(self) -> None:
        """Pause. `on_paused` follows when every lease was given back."""
        self._set_paused(True)
        if self._is_running():
            self._replan()
        else:
            self._report_paused()

    def resume(self) -> None:
        """Resume, in the running job unless the plan has changed too much during the pause."""
        self._set_paused(False)
        if self._needs_new_job():
            self._end(HANDOVER_TIMEOUT_S)
            self._start()
        else:
            self._replan()

    def restart(self, plan: TaskPlan, tasks: Collection[int]) -> None:
        """Restart these tasks with the plan; all of them if client properties have changed."""
        self._set_plan(plan)
        if self._is_paused:
            self._report_paused()
        elif self._needs_new_job():
            self._end(HANDOVER_TIMEOUT_S)
            self._start()
        elif self._running is not None:
            self._running.restart_tasks(tasks)

    def stop(self, timeout_s: float) -> None:
        """Drain and end the job; returns when no task runs."""
        self._end(timeout_s)
        self._monitor.on_driver_ended(self._connector)
        for task in sorted(self._tasks()):
            self._listener.on_stopped(task)

    # -- the job --------------------------------------------------------------------------------

    def _set_plan(self, plan: TaskPlan) -> None:
        self._plan, self._job = plan, self._to_job(plan)
        self._monitor.on_plan(self._connector, self._job)

    def _set_paused(self, paused: bool) -> None:
        self._is_paused = paused
        (self._monitor.on_paused if paused else self._monitor.on_running)(self._connector)

    def _tasks(self) -> frozenset[int]:
        return frozenset(self._plan.tasks if self._plan else ())

    def _is_running(self) -> bool:
        return self._running is not None and not self._running.is_finished

    def _needs_new_job(self) -> bool:
        """Whether no job runs, or more has changed than the partitions and how they start.

        A topic that is new to the job may have any name. A topic that the job has or had must keep
        its names: the job appends to the remote topics with which it has begun.
        """
        assert self._job is not None
        old = self._sent_job
        if old is None or not self._is_running():
            return True
        is_renamed = any(
            self._sent_names.get(topic, names) != names
            for topic, names in remote_names(self._job).items()
        )
        return not is_same_but_for_tasks(old, self._job) or is_renamed

    def _desired_job(self) -> CopyJob:
        assert self._job is not None
        return replace(self._job, tasks={}) if self._is_paused else self._job

    def _start(self) -> None:
        assert self._plan is not None
        assert self._job is not None
        self._sent_job, self._sent_names = self._job, remote_names(self._job)
        own_conf = own_spark_conf(self._plan.config)
        running = self._running = self._start_job(self._desired_job(), own_conf)
        self._renewals.add(running)
        self._status_thread = ContextThread(
            target=self._follow_statuses,
            args=(running,),
            name=f"job-status-{self._connector}",
        )
        self._status_thread.start()

    def _await_given_back(self, within_s: float) -> None:
        """Wait until the driver has closed what left the plan: another worker may get it then."""
        deadline = time.monotonic() + within_s
        while self._is_running() and time.monotonic() < deadline:
            if (status := self.status) and self._is_given_back(status):
                return
            time.sleep(GIVEN_BACK_POLL_S)

    def _is_given_back(self, status: DriverStatus) -> bool:
        assert self._job is not None
        planned = {str(partition) for partition in self._job.task_of_partition()}
        is_current = status.tasks == len(self._job.tasks)
        return is_current and status.snapshot.partitions.keys() <= planned

    def _replan(self) -> None:
        assert self._running is not None
        assert self._job is not None
        self._sent_job = self._job
        self._sent_names |= remote_names(self._job)
        self._running.replan(self._desired_job())

    def _end(self, within_s: float) -> None:
        """Drain the job. One that does not end in time ends without its leases."""
        running, self._running = self._running, None
        if running is None:
            return
        running.drain()
        running.wait(within_s)
        running.stop()
        self._renewals.remove(running)
        if self._status_thread is not None:
            self._status_thread.join(timeout=within_s)

    # -- statuses -------------------------------------------------------------------------------

    def _follow_statuses(self, running: SupervisedJob) -> None:
        for status in running.statuses():
            if running is not self._running:
                return  # the thread that ends the job reports the tasks
            self._monitor.on_status(self._connector, status)
            self._report_status(status)
        failure = running.failure()
        if running is self._running:
            error = failure or DriverLost("the Spark driver has ended without a request")
            self._monitor.on_driver_ended(self._connector, str(error))
            for task in sorted(self._tasks()):
                self._listener.on_failed(task, error)

    def _report_status(self, status: DriverStatus) -> None:
        if status.phase is DriverPhase.FAILED:
            return  # reported when the statuses have ended
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


def remote_names(job: CopyJob) -> dict[str, tuple[str, str]]:
    """Return by source topic the name of its remote topic, and the name that the policy gives."""
    return {
        topic: (remote, job.policy_topics.get(topic, remote))
        for topic, remote in job.remote_topics.items()
    }


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
