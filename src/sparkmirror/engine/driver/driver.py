"""The driver: one Spark application and its jobs.

Spark and the conductors of the jobs start at the same time. The main thread carries out commands
and publishes statuses; each job has a thread of its own (`jobs.driver_job`), and so has Spark
(`spark_application`). A job that fails ends alone; Spark's end is the end of the driver.
"""

from __future__ import annotations

import logging
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from sparkmirror import logging_context
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.partition_problems_by_cause import without_known
from sparkmirror.copy.receipt import AttemptEpoch
from sparkmirror.copy.snapshot import SPARK_STARTS
from sparkmirror.copy.task.transform.converter_factory import NewEvaluator
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.jobs.driver_job import DriverJob, without_slot
from sparkmirror.engine.driver.session_priority import SessionPriority, leads_session
from sparkmirror.engine.driver.spark_application import SparkApplication
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, missing_receipt_row
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

STATUS_INTERVAL_S = 1.0
PAUSE_PER_STATUS = 4.0
"""The driver pauses so many times as long as it writes statuses: thousands of partitions take long
to write while their leases are granted."""
LONGEST_PAUSE_S = 3.0
HANDOVER_PAUSE_S = 0.2
HANDOVER_S = 5.0
"""So long after a change of its plan or its end, a job's statuses come sooner: another worker gets
partitions when a status says that this one has given them back."""
DRAIN_CHECK_INTERVAL_S = 0.1
DRAIN_TIMEOUT_S = 10.0
"""How long the jobs may take to drain."""
RECEIPTS_TIMEOUT_S = 20.0
"""How long the receipts may take to be written after the tasks have drained."""
STOP_TIMEOUT_S = 5.0
"""How long all conductors may take to write their last positions."""
SHUTDOWN_TIMEOUT_S = 20.0
EXIT_FAILED = 2
CreateConductor: TypeAlias = Callable[[CopyJob, NewEvaluator], ConductorApi]
"""Makes the conductor of a job; it may need an evaluator of the job's query."""
INCOMPLETE = "not everything was drained in time; the next driver takes over"


def status_pause_s(published_s: float, *, is_handing_over: bool) -> float:
    """Return how long to pause after statuses that took `published_s` to write."""
    shortest, longest = STATUS_INTERVAL_S, LONGEST_PAUSE_S
    if is_handing_over:
        shortest, longest = HANDOVER_PAUSE_S, STATUS_INTERVAL_S
    return min(max(PAUSE_PER_STATUS * published_s, shortest), longest)


class Driver:
    """Runs one spec. The main thread calls `run`; any thread may call `submit`."""

    def __init__(
        self,
        spec: DriverSpec,
        create_conductor: CreateConductor,
        publish: Callable[[DriverStatus], None],
        shutdown_timeout_s: float = SHUTDOWN_TIMEOUT_S,
        python: Path | None = None,
    ) -> None:
        """Spark and its JVM get `shutdown_timeout_s` to end.

        On this computer Spark starts `python` for its Python processes; this Python if it is None.
        """
        self._shutdown_timeout_s = shutdown_timeout_s
        self._create_conductor = create_conductor
        self._publish = publish
        self._directory = Path(tempfile.mkdtemp(prefix="sparkmirror-"))
        self._application = SparkApplication(spec, self._directory, self._close_epoch, python)
        self._commands: queue.SimpleQueue[DriverCommand] = queue.SimpleQueue()
        self._jobs_lock = threading.Lock()
        self._jobs: dict[str, DriverJob] = {}
        self._ended_jobs: list[DriverJob] = []
        """Jobs that ended in the running epoch: they may have receipts of it, and of the next."""
        self._jobs_ended_before: list[DriverJob] = []
        """Jobs that had ended when the last epoch was closed."""
        self._ready_tasks = spec.ready_tasks
        self._priority = SessionPriority(time.monotonic, is_own_session=leads_session())
        self._phase = DriverPhase.STARTING
        self._drain_deadline = 0.0
        self._handover_until = 0.0
        self._problem = ""
        self._is_retriable = False
        for job in spec.jobs:
            self._add_job(job)

    def submit(self, command: DriverCommand) -> None:
        """Carry out a renewal of the membership at once; queue other commands for the main thread.

        A membership ends within seconds, and the main thread may write statuses for as long.
        """
        if command.action is DriverAction.RENEW_MEMBERSHIP:
            command = self._renew_memberships(command)
            if not command.job_names:
                return
        self._commands.put(command)

    def run(self) -> int:
        """Run until drained, stopped or failed; returns the exit code."""
        self._publish_statuses()
        self._priority.update()
        for job in self._jobs.values():
            job.start()
        self._update_task_count()
        self._application.start()
        try:
            published_s = 0.0
            while self._phase not in (DriverPhase.STOPPED, DriverPhase.FAILED):
                self._process_commands(published_s)
                self._refresh_phase()
                self._priority.update()
                begun = time.monotonic()
                self._publish_statuses()
                published_s = time.monotonic() - begun
        finally:
            self._shut_down()
        return EXIT_FAILED if self._phase is DriverPhase.FAILED else 0

    # -- commands -------------------------------------------------------------------------------

    def _process_commands(self, published_s: float) -> None:
        """Carry out commands until the next statuses are due."""
        begun = time.monotonic()
        while self._phase is not DriverPhase.STOPPED:
            due = begun + self._pause_s(published_s)
            try:
                command = self._commands.get(timeout=max(due - time.monotonic(), 0))
            except queue.Empty:
                return
            self._process(command)

    def _pause_s(self, published_s: float) -> float:
        if self._phase is DriverPhase.DRAINING:
            return DRAIN_CHECK_INTERVAL_S
        is_handing_over = time.monotonic() < self._handover_until
        return status_pause_s(published_s, is_handing_over=is_handing_over)

    def _process(self, command: DriverCommand) -> None:
        match command.action:
            case DriverAction.START_JOB:
                assert command.job is not None
                self._add_job(command.job).start()
                self._priority.update()
                self._update_task_count()
            case DriverAction.KEEP_READY:
                self._ready_tasks = command.ready_tasks
                self._update_task_count()
            case DriverAction.NEXT_EPOCH:
                self._application.end_epoch()
            case DriverAction.SET_LOG_LEVELS:
                self._set_log_levels(command.log_levels)
            case DriverAction.DRAIN:
                self._drain()
            case DriverAction.STOP:
                self._phase = DriverPhase.STOPPED
            case DriverAction.RENEW_MEMBERSHIP:
                for name in self._renew_memberships(command).job_names:
                    log.warning("Ignored %s for an unknown job %s", command.action, name)
            case _ if job := self._jobs.get(command.job_name):
                self._process_for_job(job, command)
            case _:
                log.warning("Ignored %s for an unknown job %s", command.action, command.job_name)

    def _process_for_job(self, job: DriverJob, command: DriverCommand) -> None:
        match command.action:
            case DriverAction.REPLAN:
                assert command.job is not None
                job.replan(command.job)
                self._handover_until = time.monotonic() + HANDOVER_S
                self._update_task_count()
            case DriverAction.RESTART_TASKS:
                job.restart_tasks(command.tasks)
            case DriverAction.SET_RATE:
                job.set_rate(command.bytes_per_s)
            case DriverAction.DRAIN_JOB:
                job.drain()
                self._handover_until = time.monotonic() + HANDOVER_S
            case DriverAction.STOP_JOB:
                job.cancel()

    def _renew_memberships(self, command: DriverCommand) -> DriverCommand:
        """Renew the memberships of the jobs; returns the command for those that are unknown yet."""
        with self._jobs_lock:
            known = {name: self._jobs[name] for name in command.job_names if name in self._jobs}
        for job in known.values():
            job.renew_membership(command.valid_until, is_alone=command.is_alone)
        unknown = tuple(name for name in command.job_names if name not in known)
        return replace(command, job_names=unknown)

    def _add_job(self, job: CopyJob) -> DriverJob:
        log.info("Job %s starts with %d tasks", job.name, len(job.tasks))
        added = DriverJob(job, self._new_conductor, self._application)
        with self._jobs_lock:
            self._jobs[job.name] = added
        if job.tasks:  # a job that is only prepared takes over nothing
            self._priority.on_job_started()
        return added

    def _new_conductor(self, job: CopyJob) -> ConductorApi:
        return self._create_conductor(job, self._application.new_evaluator)

    def _update_task_count(self) -> None:
        """Have slots for the tasks of all jobs, or for more that other workers may leave."""
        plans = [job.job.tasks for job in self._jobs.values()]
        partitions = sum(len(each) for plan in plans for each in plan.values())
        self._application.set_task_count(max(sum(map(len, plans)), self._ready_tasks), partitions)

    def _set_log_levels(self, levels: Mapping[str, int]) -> None:
        logging_context.set_levels(levels)
        self._application.set_log_levels(levels)
        log.info("Log levels set: %s", dict(levels))

    def _drain(self) -> None:
        if self._phase in (DriverPhase.STARTING, DriverPhase.RUNNING):
            self._phase = DriverPhase.DRAINING
            self._drain_deadline = time.monotonic() + DRAIN_TIMEOUT_S + RECEIPTS_TIMEOUT_S
            for job in self._jobs.values():
                job.drain()

    # -- phases ---------------------------------------------------------------------------------

    def _refresh_phase(self) -> None:
        """Move to the next phase if the jobs or Spark have reached it."""
        failure = self._application.failure()
        if failure and self._phase is not DriverPhase.STOPPED:
            self._fail(failure)
        elif self._phase is DriverPhase.STARTING and self._application.is_streaming:
            self._phase = DriverPhase.RUNNING
        elif self._phase is DriverPhase.DRAINING and self._is_drained():
            self._phase = DriverPhase.STOPPED

    def _is_drained(self) -> bool:
        """Whether all jobs have ended and the receipts of the last epoch are written."""
        if time.monotonic() > self._drain_deadline:
            self._problem = INCOMPLETE
            return True
        if not all(job.has_ended for job in self._jobs.values()):
            return False
        self._application.stop_new_epochs()
        return self._application.is_idle or not self._application.is_streaming

    def _fail(self, error: Exception) -> None:
        """End with FAILED. An error that is no MirrorError is a bug; another driver may succeed."""
        self._is_retriable = error.retriable if isinstance(error, MirrorError) else True
        self._problem = str(error) if isinstance(error, MirrorError) else repr(error)
        self._phase = DriverPhase.FAILED

    def _close_epoch(self, epoch: int, returned: Collection[AttemptEpoch]) -> list[ReceiptRow]:
        """The rows of receipts that no slot has returned, of all jobs. Called by Spark's thread."""
        with self._jobs_lock:
            jobs = [*self._jobs_ended_before, *self._ended_jobs, *self._jobs.values()]
            self._jobs_ended_before, self._ended_jobs = self._ended_jobs, []
        return [
            missing_receipt_row(job.job.flow, receipt)
            for job in jobs
            for receipt in job.close_epoch(epoch, returned)
        ]

    def _shut_down(self) -> None:
        """Stop the conductors, which write positions; then Spark, for a limited time."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for job in self._jobs.values():
            job.stop()
        for job in self._jobs.values():
            job.wait(max(deadline - time.monotonic(), 0))
        closing = threading.Thread(target=self._application.close, name="spark-close", daemon=True)
        closing.start()
        closing.join(timeout=self._shutdown_timeout_s)
        shutil.rmtree(self._directory, ignore_errors=True)

    # -- statuses -------------------------------------------------------------------------------

    def _publish_statuses(self) -> None:
        self._publish(
            DriverStatus(
                phase=self._phase,
                application_id=self._application.application_id,
                is_ready=self._application.is_ready,
                problem=self._problem,
                is_retriable=self._is_retriable,
            )
        )
        for name, job in list(self._jobs.items()):
            job.check()
            self._publish(self._job_status(job))
            if job.has_ended and self._phase is not DriverPhase.DRAINING:
                with self._jobs_lock:
                    self._ended_jobs.append(self._jobs.pop(name))
                self._update_task_count()

    def _job_status(self, job: DriverJob) -> DriverStatus:
        application, phase = self._application, self._job_phase(job)
        problem = job.problem or self._problem or application.problem()
        if phase in (DriverPhase.RUNNING, DriverPhase.DRAINING, DriverPhase.STOPPED):
            snapshot = without_slot(job.snapshot(), application.task_problems(job.job.name))
            if problem and application.lacks_slots:
                snapshot = snapshot.while_waiting_for_slots(job.job.tasks, problem)
            reasons = {view.reason for view in snapshot.partitions.values()}
            others = without_known(job.problems(), reasons | {problem})
            problem = "; ".join(filter(None, [problem, *others]))
        else:
            cause = job.problem or self._problem or application.start_problem()
            snapshot = job.stalled_snapshot(cause or SPARK_STARTS)
        return DriverStatus(
            phase=phase,
            job=job.job.name,
            application_id=application.application_id,
            web_ui=application.web_ui,
            slots=application.slots,
            tasks=len(job.job.tasks),
            epoch=application.epoch,
            unwritten_receipts=application.unwritten_receipts,
            problem=problem,
            is_retriable=job.is_retriable,
            snapshot=snapshot,
        )

    def _job_phase(self, job: DriverJob) -> DriverPhase:
        """The phase of a job as its owner sees it: it runs if Spark does, and ends with it."""
        if job.phase is DriverPhase.FAILED:
            return job.phase
        if self._phase in (DriverPhase.DRAINING, DriverPhase.STOPPED):
            return self._phase
        if self._phase is DriverPhase.FAILED:
            return DriverPhase.RESTARTING
        if job.phase is DriverPhase.RUNNING and not self._application.is_streaming:
            return DriverPhase.STARTING
        return job.phase
