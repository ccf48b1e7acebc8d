"""One job of a Spark application, as its owner sees it: statuses, commands, the end.

The supervisor of the application (`driver_supervisor`) creates it, passes its commands to the
driver process and publishes its statuses. It lives through several driver processes, until it is
drained or fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import starting_snapshot
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand
from sparkmirror.errors import MirrorError

STOP_TIMEOUT_S = 35.0
"""How long a driver may take to end a job at once; after that the driver is killed."""
_ENDED = (DriverPhase.STOPPED, DriverPhase.FAILED)


class SupervisedJob:
    """A job. One thread owns it; other threads may call `status` and `statuses`."""

    def __init__(
        self, job: CopyJob, send: Callable[[DriverCommand], bool], kill_driver: Callable[[], None]
    ) -> None:
        """`send` returns whether a driver process has the command."""
        self.job = job
        """The latest plan. The next driver process starts with it."""
        self.send = send
        """Sends a command to the driver process. The jobs of one driver have the same function."""
        self._kill_driver = kill_driver
        self._condition = threading.Condition()
        self._status = DriverStatus(
            phase=DriverPhase.STARTING,
            job=job.name,
            tasks=len(job.tasks),
            snapshot=starting_snapshot(job),
        )
        self._status_number = 0
        self.is_ending = False
        """Whether the job was drained or stopped: another driver process must not start it."""
        self._is_finished = False
        self._failure: MirrorError | None = None

    @property
    def status(self) -> DriverStatus:
        """The latest status."""
        return self._status

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended: no driver process runs it, now or later."""
        return self._is_finished

    def failure(self) -> MirrorError | None:
        """Why the job has failed, if it has."""
        return self._failure

    def statuses(self) -> Iterator[DriverStatus]:
        """Every new status (a slow reader gets only the latest), until the job has ended."""
        seen = 0
        while True:
            with self._condition:
                while self._status_number == seen and not self._is_finished:
                    self._condition.wait()
                if self._status_number == seen:
                    return
                seen, status = self._status_number, self._status
            yield status

    # -- commands --------------------------------------------------------------------------------

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to so many bytes per second; 0 means no limit. Later drivers keep it."""
        settings = replace(self.job.settings, bytes_per_s=bytes_per_s)
        self.job = replace(self.job, settings=settings)
        self._command(DriverAction.SET_RATE, bytes_per_s=bytes_per_s)

    def replan(self, job: CopyJob) -> None:
        """Continue with another plan of the same job. A job without tasks is paused.

        Later drivers start with it.
        """
        assert job.name == self.job.name
        self.job = job
        self._command(DriverAction.REPLAN, job=job)

    def restart_tasks(self, tasks: Collection[int]) -> None:
        """Have these tasks give their leases back and start again."""
        self._command(DriverAction.RESTART_TASKS, tasks=tuple(tasks))

    def drain(self) -> None:
        """Have the driver finish the work in flight and end the job; returns at once."""
        self.is_ending = True
        if not self._is_finished and not self._command(DriverAction.DRAIN_JOB):
            self.finish()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the job has ended, at most so long; returns whether it has."""
        with self._condition:
            return self._condition.wait_for(lambda: self._is_finished, timeout=timeout_s)

    def stop(self, within_s: float = STOP_TIMEOUT_S) -> None:
        """End the job now. A driver that does not end it in time is killed, and all its jobs move
        to the next driver."""
        if self._is_finished:
            return
        self.is_ending = True
        if not self._command(DriverAction.STOP_JOB):
            self.finish()
        elif not self.wait(within_s):
            self.finish()
            self._kill_driver()

    def _command(
        self,
        action: DriverAction,
        *,
        job: CopyJob | None = None,
        bytes_per_s: int = 0,
        tasks: tuple[int, ...] = (),
    ) -> bool:
        return self.send(
            DriverCommand(
                action=action,
                job_name=self.job.name,
                job=job,
                bytes_per_s=bytes_per_s,
                tasks=tasks,
            )
        )

    # -- from the supervisor ---------------------------------------------------------------------

    def publish(self, status: DriverStatus) -> None:
        """Publish a status of the driver. A job that is stopped or has failed has ended."""
        with self._condition:
            if self._is_finished:
                return
            self._status = status
            self._status_number += 1
            self._is_finished = status.phase in _ENDED
            if status.phase is DriverPhase.FAILED and self._failure is None:
                self._failure = MirrorError(status.problem)
            self._condition.notify_all()

    def publish_stalled(self, phase: DriverPhase, problem: str) -> None:
        """Publish that no driver reports: what the last one said of the source is not known now."""
        last = self._status
        self.publish(
            replace(
                last,
                phase=phase,
                problem=problem,
                slots=last.slots if phase is last.phase else 0,
                snapshot=last.snapshot.while_stalled(problem),
            )
        )

    def fail(self, failure: MirrorError) -> None:
        """End the job with the error of its application."""
        self._failure = self._failure or failure
        self.publish_stalled(DriverPhase.FAILED, str(failure))

    def finish(self) -> None:
        """End the job without another status."""
        with self._condition:
            self._is_finished = True
            self._condition.notify_all()
