"""Jobs get the membership of their worker again and again, until they have ended."""

from __future__ import annotations

import threading

from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand
from sparkmirror.engine.supervisor.supervised_job import SupervisedJob
from sparkmirror.worker.group.membership_expiry import Membership
from sparkmirror.worker.group.membership_renewals import MembershipRenewals
from tests.support.waiting import wait_until


class JobWithCommands:
    """A job, and the renewals that its driver gets."""

    def __init__(self) -> None:
        self.renewals: list[DriverCommand] = []
        self.job = SupervisedJob(job_without_partitions(1), self._send, lambda: None)

    def _send(self, command: DriverCommand) -> bool:
        assert command.action is DriverAction.RENEW_MEMBERSHIP
        self.renewals.append(command)
        return True


class GrowingMembership:
    """A membership that is valid for longer each time it is asked for."""

    def __init__(self) -> None:
        self.valid_until = 0.0

    def __call__(self) -> Membership:
        self.valid_until += 1.0
        return Membership(self.valid_until, is_alone=False)


def test_every_job_gets_later_memberships_without_a_status_of_its_own() -> None:
    renewals = MembershipRenewals(GrowingMembership(), interval_s=0.01)
    jobs = [JobWithCommands(), JobWithCommands()]
    for one in jobs:
        renewals.add(one.job)
        assert len(one.renewals) >= 1, "at once"
    wait_until(lambda: all(len(one.renewals) > 3 for one in jobs), "renewals")
    for one in jobs:
        renewals.remove(one.job)
        times = [command.valid_until for command in one.renewals]
        assert times == sorted(set(times))
        assert not any(command.is_alone for command in one.renewals)


def test_the_thread_ends_with_the_last_job_and_begins_with_the_next_one() -> None:
    renewals = MembershipRenewals(GrowingMembership(), interval_s=0.01)
    for end in (renewals.remove, SupervisedJob.finish):
        before = renewal_threads()
        one = JobWithCommands()
        renewals.add(one.job)
        (thread,) = renewal_threads() - before
        end(one.job)
        thread.join(timeout=50)
        assert not thread.is_alive()


def renewal_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "membership-renewals"}
