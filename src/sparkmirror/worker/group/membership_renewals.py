"""Tells each driver, once a second, until when the worker of its jobs is a member of its group.

A job that shares its connector takes over nothing without a membership, and stops what it cannot
fence. Renewals have a thread of their own: statuses of thousands of partitions take long to read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand
from sparkmirror.engine.supervisor.supervised_job import SupervisedJob
from sparkmirror.worker.group.membership_expiry import Membership

log = logging.getLogger(__name__)

INTERVAL_S = 1.0


class MembershipRenewals:
    """Renews the membership of the jobs of one worker, or of one flow of a mirror."""

    def __init__(
        self, get_membership: Callable[[], Membership], interval_s: float = INTERVAL_S
    ) -> None:
        self._get_membership = get_membership
        self._interval_s = interval_s
        self._condition = threading.Condition()
        self._jobs: list[SupervisedJob] = []
        self._thread: threading.Thread | None = None

    def add(self, job: SupervisedJob) -> None:
        """Tell the job's driver the membership now, and again until the job has ended."""
        self._renew([job])
        with self._condition:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="membership-renewals", daemon=True
                )
                self._thread.start()

    def remove(self, job: SupervisedJob) -> None:
        """Renew no more. The thread ends with the last job."""
        with self._condition:
            self._jobs = [one for one in self._jobs if one is not job]
            self._condition.notify_all()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: not self._jobs, timeout=self._interval_s)
                self._jobs = [job for job in self._jobs if not job.is_finished]
                if not self._jobs:
                    self._thread = None
                    return
                jobs = tuple(self._jobs)
            try:
                self._renew(jobs)
            except Exception:  # the next renewals may succeed
                log.exception(
                    "Cannot read the membership of the worker in its group; tries again in %.0f s",
                    self._interval_s,
                )

    def _renew(self, jobs: Iterable[SupervisedJob]) -> None:
        """Send one command to each driver. An error concerns one driver only."""
        membership = self._get_membership()
        by_driver: dict[Callable[[DriverCommand], bool], list[str]] = {}
        for job in jobs:
            by_driver.setdefault(job.send, []).append(job.job.name)
        for send, names in by_driver.items():
            command = DriverCommand(
                action=DriverAction.RENEW_MEMBERSHIP,
                job_names=tuple(names),
                valid_until=membership.valid_until,
                is_alone=membership.is_alone,
            )
            try:
                send(command)
            except Exception:
                log.exception(
                    "Cannot tell the driver of jobs %s about the membership of its worker; the next"
                    " renewal follows",
                    ", ".join(names),
                )
