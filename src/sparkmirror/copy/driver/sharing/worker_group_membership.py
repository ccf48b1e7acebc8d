"""The worker's membership in its group, as the conductor knows it.

A worker renews it once a second, with the moment until which the group's coordinator keeps the
worker as a member. After that moment another worker may own the partitions. So a conductor without
valid membership grants nothing, fences nothing and writes nothing; running leases go on until they
are fenced or the membership is valid again. Leases that no fence ends are taken back
(`task_events`).

The clock only avoids needless fences between two owners. What keeps records from being copied twice
are fences and the order of the ledger's records (`ledger_cache`), which need no clock. On a target
without fences there is only the clock.

Any thread may call it.
"""

from __future__ import annotations

import math
import threading
import time

from sparkmirror.errors import MirrorError

NOT_A_MEMBER = (
    "the worker is not a member of its group at the moment: another worker may own the partition"
)
"""Why a conductor without valid membership grants nothing."""
RENEWALS_AFTER_FENCE = 2
"""After so many renewals the worker would know that it has lost a partition. So another conductor
that fenced the partition was not the owner."""


class MembershipMissing(MirrorError):
    """The worker has not said yet that it is a member of its group."""

    retriable = True


class GroupMembership:
    """Until when a worker is a member of its group."""

    def __init__(self, *, is_required: bool) -> None:
        """A conductor that shares its connector with no other worker needs none."""
        self.is_required = is_required
        self.is_alone = not is_required
        """Whether the group has no other member: no live conductor holds a partition."""
        self.renewals = 0
        self._valid_until = 0.0
        self._renewed = threading.Condition()

    def renew(self, valid_until: float, *, is_alone: bool) -> bool:
        """Set the end of the membership, in seconds of the monotonic clock of this machine.

        Returns whether that changes what the conductor may do before the end that it knew.
        """
        with self._renewed:
            is_news = not self.is_valid() or valid_until < self._valid_until
            is_endless = valid_until == math.inf
            self.renewals += is_endless or valid_until > self._valid_until
            self._valid_until, self.is_alone = valid_until, is_alone
            self._renewed.notify_all()
            return is_news

    @property
    def valid_until(self) -> float:
        """When it ends, unless it is renewed; infinite if none is required."""
        return self._valid_until if self.is_required else math.inf

    def is_valid(self) -> bool:
        """Whether the conductor may grant, fence and write now."""
        return not self.is_required or time.monotonic() < self._valid_until

    def await_valid(self, timeout_s: float) -> None:
        """Wait until it is valid. Raises MembershipMissing."""
        with self._renewed:
            if not self._renewed.wait_for(self.is_valid, timeout_s):
                raise MembershipMissing(NOT_A_MEMBER)

    def may_take(self, renewals_needed: int) -> bool:
        """Return whether the worker would know if another worker had a partition.

        `renewals_needed` is that of the partition.
        """
        return renewals_needed <= self.renewals

    def renewals_after_fence(self) -> int:
        """Return the number of renewals to wait for after another conductor took a partition."""
        return 0 if self.is_alone else self.renewals + RENEWALS_AFTER_FENCE
