"""One job of a driver: its conductor, from the start to the end.

A thread of its own starts the conductor as soon as both clusters answer, gives its tasks to the
control server, and drains and stops it at the end. A conductor that fails concerns its job only.

    starting ──▶ running ──▶ draining ──▶ stopped
        └───────────┴──▶ restarting (after a pause with another conductor) or failed
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Protocol

from sparkmirror import logging_context
from sparkmirror.backoff import Backoff
from sparkmirror.copy.driver.lost_attempt_receipts import MissingReceipt
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.receipt import AttemptEpoch
from sparkmirror.copy.settings import cluster_side
from sparkmirror.copy.snapshot import CopySnapshot, starting_snapshot
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.supervisor.driver_status import DriverPhase
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 10.0
"""How often the thread looks whether its conductor has failed, if the driver does not say so."""
DRAIN_CHECK_INTERVAL_S = 0.05
DRAIN_GRACE_S = 5.0
"""How long a drain may take longer than a task may take to drain."""
MAX_FAILED_STARTS = 3
"""After so many conductors in a row that never ran, the job has failed."""
_ENDED = (DriverPhase.STOPPED, DriverPhase.FAILED)


class TaskRunner(Protocol):
    """Runs the tasks of jobs (`spark_application` implements it). Any thread may call it."""

    def set_job(
        self, name: str, conductor: ConductorApi, tasks: Collection[int], flow: str = ""
    ) -> None:
        """Run exactly these tasks of a job."""
        ...

    def remove_job(self, name: str) -> None:
        """Forget a job; its tasks end."""
        ...

    def restart_tasks(self, name: str, tasks: Collection[int]) -> None:
        """Drain these tasks and start them again."""
        ...


class DriverJob:
    """One job. The driver's main thread calls it."""

    def __init__(
        self,
        job: CopyJob,
        create_conductor: Callable[[CopyJob], ConductorApi],
        runner: TaskRunner,
        backoff: Backoff | None = None,
    ) -> None:
        self.job = job
        self.phase = DriverPhase.STARTING
        """RUNNING as soon as the conductor runs, whether or not Spark does."""
        self.problem = ""
        self.is_retriable = False
        self._create_conductor = create_conductor
        self._runner = runner
        self._backoff = backoff or Backoff(initial_s=1.0, max_s=60.0)
        self._conductor: ConductorApi | None = None
        self._ended_conductors: list[ConductorApi] = []
        """They may still have receipts of the running epoch, and of the next one."""
        self._ended_before: list[ConductorApi] = []
        """Those that had ended when the last epoch was closed."""
        self._stalled = CopySnapshot(), "", CopySnapshot()
        """A snapshot, a cause, and the snapshot that is shown while no task copies."""
        self._membership = (0.0, False)
        """Until when the worker is a member of its group, and whether it is the only member."""
        self._failed_starts = 0
        self._condition = threading.Condition()
        self._is_ending = False
        self._must_drain = True
        self._thread = logging_context.ContextThread(target=self._run, name=f"job-{job.name}")

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    def check(self) -> None:
        """Have the thread end a conductor that has failed. The driver calls it once a second."""
        conductor = self._conductor
        if conductor is not None and conductor.failure() is not None:
            with self._condition:
                self._condition.notify_all()

    @property
    def has_ended(self) -> bool:
        """Whether the job is stopped or has failed."""
        return self.phase in _ENDED

    # -- commands --------------------------------------------------------------------------------

    def replan(self, job: CopyJob) -> None:
        """Continue with another plan."""
        with self._condition:
            self.job = job
            conductor = self._conductor
            if conductor and self.phase is DriverPhase.RUNNING:
                conductor.replan(job)
                self._runner.set_job(job.name, conductor, job.tasks, job.flow)

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task; 0 means no limit."""
        with self._condition:
            settings = replace(self.job.settings, bytes_per_s=bytes_per_s)
            self.job = replace(self.job, settings=settings)
            if self._conductor:
                self._conductor.set_rate(bytes_per_s)

    def renew_membership(self, valid_until: float, *, is_alone: bool) -> None:
        """Pass on until when the worker is a member of its group; later conductors get it too."""
        with self._condition:
            self._membership = (valid_until, is_alone)
            if self._conductor:
                self._conductor.renew_membership(valid_until, is_alone=is_alone)

    def restart_tasks(self, tasks: Collection[int]) -> None:
        """Drain these tasks and start them again."""
        self._runner.restart_tasks(self.job.name, tasks)

    def drain(self) -> None:
        """End the job after its leases were given back. Returns at once."""
        self._request_end()

    def stop(self) -> None:
        """End the job without its leases; write their positions. Returns at once."""
        self._must_drain = False
        self._request_end()

    def cancel(self) -> None:
        """End the job now and write nothing more. Returns at once."""
        self.stop()
        with self._condition:
            if self._conductor:
                self._conductor.cancel()

    def wait(self, timeout_s: float) -> None:
        """Wait until the job has ended, at most so long."""
        if self._thread.ident:
            self._thread.join(timeout=timeout_s)

    def _request_end(self) -> None:
        with self._condition:
            self._is_ending = True
            if self._conductor and self.phase is DriverPhase.STARTING:
                self._conductor.cancel()  # it has no leases, and a cluster may not answer
            self._condition.notify_all()

    # -- what the driver publishes ---------------------------------------------------------------

    def snapshot(self) -> CopySnapshot:
        """Return the state of the job's partitions."""
        conductor = self._conductor
        return conductor.snapshot() if conductor else starting_snapshot(self.job)

    def stalled_snapshot(self, cause: str) -> CopySnapshot:
        """Return the state while no task copies; the same object while nothing changes."""
        snapshot = self.snapshot()
        before, known_cause, stalled = self._stalled
        if before is not snapshot or known_cause != cause:
            stalled = snapshot.while_stalled(cause)
            self._stalled = snapshot, cause, stalled
        return stalled

    def problems(self) -> Collection[str]:
        """Return what does not work and ends nothing."""
        conductor = self._conductor
        return conductor.problems() if conductor else ()

    def close_epoch(self, epoch: int, returned: Collection[AttemptEpoch]) -> list[MissingReceipt]:
        """End an epoch; returns the receipts of the job that no task has returned."""
        with self._condition:
            conductors = [*self._ended_before, *self._ended_conductors]
            self._ended_before, self._ended_conductors = self._ended_conductors, []
            if self._conductor:
                conductors.append(self._conductor)
        return [
            receipt
            for conductor in conductors
            for receipt in conductor.close_epoch(epoch, returned)
        ]

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        with logging_context.context(connector=self.job.name):
            while not self.has_ended:
                failure = self._run_conductor()
                if failure is None or self._is_ending:
                    self.phase = DriverPhase.STOPPED
                else:
                    self._on_failure(failure)

    def _run_conductor(self) -> Exception | None:
        """Run one conductor to its end; returns why it has failed, if it has."""
        name = self.job.name
        try:
            conductor = self._create_conductor(self.job)
        except MirrorError as error:
            return error
        with self._condition:
            self._conductor = conductor
            valid_until, is_alone = self._membership
            conductor.renew_membership(valid_until, is_alone=is_alone)
            if self._is_ending:
                conductor.cancel()
        try:
            failure = self._start(conductor)
            if failure is None and self.phase is DriverPhase.RUNNING:
                failure = self._await_end(conductor)
                if failure is None and self._must_drain:
                    self._drain(conductor)
            return failure
        finally:
            self._runner.remove_job(name)
            conductor.stop()
            with self._condition:
                self._ended_conductors.append(conductor)

    def _start(self, conductor: ConductorApi) -> Exception | None:
        """Try until both clusters are reachable; returns the error that no retry can heal."""
        backoff = Backoff(initial_s=0.5, max_s=2.0)
        while not self._is_ending:
            try:
                conductor.start()
            except MirrorError as error:
                log.warning("Connector %s did not start: %s", self.job.connector, error)
                if not error.retriable:
                    return error
                self.problem = waiting_text(error, self.job)
                self._pause(backoff.next_delay_s())
            except Exception as error:
                log.exception("Connector %s did not start", self.job.connector)
                return error
            else:
                self._on_started(conductor)
                return None
        return None

    def _on_started(self, conductor: ConductorApi) -> None:
        with self._condition:
            self.problem = ""
            self.phase = DriverPhase.RUNNING
            self._failed_starts = 0
            conductor.replan(self.job)  # a command may have changed it since
            self._runner.set_job(self.job.name, conductor, self.job.tasks, self.job.flow)

    def _await_end(self, conductor: ConductorApi) -> Exception | None:
        """Wait until the end is requested; returns the error of a conductor that fails before."""
        began = time.monotonic()
        with self._condition:
            while not self._condition.wait_for(
                lambda: self._is_ending or conductor.failure() is not None, CHECK_INTERVAL_S
            ):
                pass
        if time.monotonic() - began > self._backoff.max_s:
            self._backoff.reset()
        return None if self._is_ending else conductor.failure()

    def _drain(self, conductor: ConductorApi) -> None:
        """Have the tasks give all leases back, within a limited time."""
        self.phase = DriverPhase.DRAINING
        self._runner.set_job(self.job.name, conductor, (), self.job.flow)
        conductor.drain()
        deadline = time.monotonic() + self.job.settings.drain_timeout_s + DRAIN_GRACE_S
        while not conductor.is_drained() and self._must_drain:
            if time.monotonic() > deadline:
                self.problem = "not everything was drained in time; the next driver takes over"
                log.warning("Connector %s: %s", self.job.connector, self.problem)
                return
            time.sleep(DRAIN_CHECK_INTERVAL_S)

    def _on_failure(self, failure: Exception) -> None:
        """Fail, or wait for the next conductor. An error that is no MirrorError is a bug."""
        is_mirror_error = isinstance(failure, MirrorError)
        self.is_retriable = failure.retriable if isinstance(failure, MirrorError) else True
        self.problem = str(failure) if is_mirror_error else repr(failure)
        if self.phase is not DriverPhase.RUNNING:
            self._failed_starts += 1
        if not self.is_retriable or self._failed_starts >= MAX_FAILED_STARTS:
            self.phase = DriverPhase.FAILED
            return
        self.phase = DriverPhase.RESTARTING
        self._pause(self._backoff.next_delay_s())
        if self._is_ending:
            self.phase = DriverPhase.STOPPED
        else:
            self.phase = DriverPhase.STARTING

    def _pause(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._is_ending, timeout=seconds)


def waiting_text(error: MirrorError, job: CopyJob) -> str:
    """Say for which cluster the driver waits, and why."""
    side = cluster_side(error, job.settings)
    return f"waiting for {side} cluster {error}" if side else f"waiting: {error}"


def without_slot(snapshot: CopySnapshot, problems: Mapping[int, str]) -> CopySnapshot:
    """Return the snapshot with a reason for each partition that waits for a failed task."""
    for task, problem in problems.items():
        snapshot = snapshot.while_waiting_for_slots((task,), problem)
    return snapshot
