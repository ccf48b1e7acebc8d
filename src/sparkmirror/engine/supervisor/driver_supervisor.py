"""The supervisor of a Spark application: runs its jobs, by one driver process after the other.

    supervisor = DriverSupervisor(spec)
    supervisor.start()
    job = supervisor.start_job(copy_job)
    for status in job.statuses():
        if ...:
            job.drain()

Starts the driver and reads its statuses. When the driver or its JVM dies, starts another one after
a pause, with all jobs. Never loads Spark. When this process dies the driver drains and ends.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sparkmirror.backoff import Backoff
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.engine.supervisor.driver_process import DriverProcess
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import SILENT_S, DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand
from sparkmirror.engine.supervisor.idle_driver import DRIVER_MODULE, IdleDriver
from sparkmirror.engine.supervisor.supervised_job import SupervisedJob
from sparkmirror.errors import DriverLost, MirrorError

log = logging.getLogger(__name__)

STATUS_TIMEOUT_S = 60.0
"""A driver without a status for so long is killed."""
SILENT_AT_START_S = 10.0
"""The same for a driver that has not reached RUNNING. It shows no lag, and it starts a JVM."""
DRAIN_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
STABLE_RUN_S = 60.0
"""After a run of this length the pause before the next driver is short again."""
MAX_FAILED_STARTS = 3
"""After so many drivers in a row that never reached RUNNING, the supervisor gives up."""
NEVER_S = float("inf")


class DriverSupervisor:
    """Keeps one Spark application running. Any thread may call it."""

    def __init__(
        self,
        spec: DriverSpec,
        *,
        module: str = DRIVER_MODULE,
        backoff: Backoff | None = None,
        idle_timeout_s: float = NEVER_S,
    ) -> None:
        """`module` is the Python module that the driver process runs.

        The application ends when it had no job for `idle_timeout_s`.
        """
        self._spec = spec.with_absolute_paths()
        self._module = module
        self._backoff = backoff or Backoff(initial_s=1.0, max_s=60.0)
        self._idle_timeout_s = idle_timeout_s
        self._idle_since = time.monotonic()
        self._ready_tasks = spec.ready_tasks
        self._condition = threading.Condition(threading.RLock())
        self._jobs = {job.name: self._new_job(job) for job in spec.jobs}
        self._status = DriverStatus(phase=DriverPhase.STARTING)
        self._idle_driver: IdleDriver | None = None
        self._process: DriverProcess | None = None
        self._has_reached_running = False
        self._failed_starts = 0
        self._should_run = True
        self._final_command: DriverCommand | None = None
        self._end_deadline = NEVER_S
        self._failure: MirrorError | None = None
        self._thread = threading.Thread(target=self._run, name="driver-supervisor", daemon=True)

    def use(self, driver: IdleDriver) -> None:
        """Have the first driver process be this one. Called before `start`."""
        self._idle_driver = driver

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    def start_job(self, job: CopyJob) -> SupervisedJob | None:
        """Run one more job. Returns None if the application ends or has failed."""
        with self._condition:
            if not self._should_run or self._failure:
                return None
            self._forget_ended_jobs()
            assert job.name not in self._jobs, "the job runs already"
            supervised = self._jobs[job.name] = self._new_job(job)
            self._send_command(DriverCommand(action=DriverAction.START_JOB, job=job))
            return supervised

    def keep_ready(self, tasks: int) -> bool:
        """Keep slots for so many tasks, also without a job; 0: only while there are jobs.

        Returns False if the application ends or has failed.
        """
        with self._condition:
            if not self._should_run or self._failure:
                return False
            if tasks != self._ready_tasks:
                self._ready_tasks = tasks
                self._idle_since = time.monotonic()
                command = DriverCommand(action=DriverAction.KEEP_READY, ready_tasks=tasks)
                self._send_command(command)
            return True

    def job(self, name: str) -> SupervisedJob:
        """Return a job of the spec, or one that was started."""
        return self._jobs[name]

    def has_job(self, name: str) -> bool:
        """Whether a job of this name runs, or has not ended yet."""
        with self._condition:
            self._forget_ended_jobs()
            return name in self._jobs

    @property
    def status(self) -> DriverStatus:
        """The latest status of the driver itself."""
        return self._status

    def failure(self) -> MirrorError | None:
        """Why the supervisor has given up, if it has."""
        return self._failure

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Set Python loggers of the driver and its slots. Later drivers start with the levels."""
        with self._condition:
            known = {**self._spec.log_levels, **levels}
            self._spec = replace(self._spec, log_levels=known)
            self._send_command(
                DriverCommand(action=DriverAction.SET_LOG_LEVELS, log_levels=dict(levels))
            )

    def start_next_epoch(self) -> None:
        """End the epoch, so that its receipts are written; the next one follows."""
        with self._condition:
            self._send_command(DriverCommand(action=DriverAction.NEXT_EPOCH))

    def drain(self, within_s: float = DRAIN_TIMEOUT_S) -> None:
        """Have the driver finish and end; returns at once. All jobs end with the driver."""
        self._request_end(DriverCommand(action=DriverAction.DRAIN), within_s)

    def wait(self, timeout_s: float) -> None:
        """Wait until the supervisor has ended, at most so long."""
        if self._thread.ident:
            self._thread.join(timeout=timeout_s)

    def stop(self, within_s: float = STOP_TIMEOUT_S) -> None:
        """End the driver now; returns when no process is left."""
        if not self._thread.ident:
            return
        self._request_end(DriverCommand(action=DriverAction.STOP), within_s)
        self._thread.join(timeout=within_s)
        process = self._process
        if self._thread.is_alive() and process:
            log.warning(
                "Killing the Spark driver of %s: it did not end within %.0f s",
                self._spec.name,
                within_s,
            )
            process.kill()
            self._thread.join(timeout=STOP_TIMEOUT_S)

    # -- jobs -----------------------------------------------------------------------------------

    def _new_job(self, job: CopyJob) -> SupervisedJob:
        return SupervisedJob(job, self._send_job_command, self._kill_driver)

    def _send_job_command(self, command: DriverCommand) -> bool:
        with self._condition:
            self._send_command(command)
            return self._process is not None

    def _kill_driver(self) -> None:
        with self._condition:
            if self._process:
                log.warning(
                    "Killing the Spark driver of %s: it does not end a job", self._spec.name
                )
                self._process.kill()

    def _forget_ended_jobs(self) -> None:
        self._jobs = {name: job for name, job in self._jobs.items() if not job.is_finished}

    def _running_jobs(self) -> list[SupervisedJob]:
        """Return the jobs that run, and note since when there is none."""
        with self._condition:
            self._forget_ended_jobs()
            if self._jobs:
                self._idle_since = time.monotonic()
            return list(self._jobs.values())

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._should_run and not self._failure:
                began = time.monotonic()
                with self._next_driver() as driver:
                    code = self._run_driver(driver.process)
                if self._should_run:
                    self._restart_or_give_up(code, time.monotonic() - began)
        except OSError as error:
            self._give_up(MirrorError(f"cannot start the Spark driver: {error}"))
        finally:
            with self._condition:
                self._should_run = False
                for job in self._jobs.values():
                    job.finish()

    def _next_driver(self) -> IdleDriver:
        driver, self._idle_driver = self._idle_driver, None
        log_file = Path(self._spec.log)
        log_file.parent.mkdir(parents=True, exist_ok=True)
        return driver or IdleDriver(self._module, log_file)

    def _run_driver(self, process: DriverProcess) -> int:
        """Give a driver its spec and read its statuses until it ends; returns its exit code."""
        with self._condition:
            spec = replace(self._next_spec(), variables=process.new_variables())
            process.write_line(spec.to_line())
            self._has_reached_running = False
            self._process = process
            if self._final_command:  # it was given before this driver started
                self._send_command(self._final_command)
        left_s = 0.0
        try:
            seen: dict[str, CopySnapshot] = {}
            for line in process.read_lines(self._read_timeout_s):
                status = DriverStatus.from_line(line, seen)
                seen[status.job] = status.snapshot
                self._publish(status)
            left_s = STOP_TIMEOUT_S if self._should_run else self._end_deadline - time.monotonic()
        finally:
            code = process.shut_down(max(left_s, 0.0))
            with self._condition:
                self._process = None
        return code

    def _next_spec(self) -> DriverSpec:
        """Return the spec with every job that is to go on; the others have ended."""
        for job in self._jobs.values():
            if job.is_ending:
                job.finish()
        self._forget_ended_jobs()
        return replace(
            self._spec,
            jobs=tuple(job.job for job in self._jobs.values()),
            ready_tasks=self._ready_tasks,
        )

    def _read_timeout_s(self, silent_s: float) -> float:
        """Return how long to wait for the next status; publish that the driver is silent."""
        limit_s = SILENT_S if self._has_reached_running else SILENT_AT_START_S
        jobs = self._running_jobs()
        if silent_s > limit_s and self._should_run:
            problem = (
                f"the Spark driver has sent no status for {limit_s:.0f} s; after"
                f" {STATUS_TIMEOUT_S:.0f} s it is killed and started again; see {self._spec.log}"
            )
            for job in jobs:
                job.publish_stalled(job.status.phase, problem)
        self._end_if_idle()
        return min(STATUS_TIMEOUT_S - silent_s, self._end_deadline - time.monotonic())

    def _end_if_idle(self) -> None:
        with self._condition:
            idle_s = time.monotonic() - self._idle_since
            is_idle = not self._jobs and not self._ready_tasks and idle_s > self._idle_timeout_s
            if is_idle and self._should_run:
                log.info("Spark application %s ends: it has no connector", self._spec.name)
                self.drain()

    def _restart_or_give_up(self, code: int, lasted_s: float) -> None:
        """After an end that was not requested: wait for the next driver, or set `_failure`."""
        last = self._status
        why = f"the Spark driver ended with code {code}; see {self._spec.log}"
        if last.phase is DriverPhase.FAILED and last.problem:
            why = last.problem
        self._failed_starts = 0 if self._has_reached_running else self._failed_starts + 1
        is_final = last.phase is DriverPhase.FAILED and not last.is_retriable
        if is_final or self._failed_starts >= MAX_FAILED_STARTS:
            self._give_up(MirrorError(why) if is_final else DriverLost(why))
            return
        if lasted_s > STABLE_RUN_S:
            self._backoff.reset()
        pause_s = self._backoff.next_delay_s()
        log.warning(
            "Spark application %s: %s; the next driver starts in %.0f s",
            self._spec.name,
            why,
            pause_s,
        )
        self._status = replace(
            last, phase=DriverPhase.RESTARTING, problem=why, slots=0, is_ready=False
        )
        for job in self._running_jobs():
            job.publish_stalled(DriverPhase.RESTARTING, why)
        with self._condition:
            self._condition.wait_for(lambda: not self._should_run, timeout=pause_s)

    def _give_up(self, failure: MirrorError) -> None:
        with self._condition:
            self._failure = failure
            self._status = replace(
                self._status, phase=DriverPhase.FAILED, problem=str(failure), slots=0
            )
            jobs = list(self._jobs.values())
        for job in jobs:
            job.fail(failure)

    def _publish(self, status: DriverStatus) -> None:
        if not status.job:
            self._has_reached_running |= status.phase is DriverPhase.RUNNING
            self._status = status
        elif (job := self._jobs.get(status.job)) is not None:
            job.publish(status)

    # -- ending ---------------------------------------------------------------------------------

    def _send_command(self, command: DriverCommand) -> None:
        if self._process:
            self._process.write_line(command.to_line())

    def _request_end(self, command: DriverCommand, within_s: float) -> None:
        with self._condition:
            self._should_run, self._final_command = False, command
            self._end_deadline = min(self._end_deadline, time.monotonic() + within_s)
            self._send_command(command)
            self._condition.notify_all()
