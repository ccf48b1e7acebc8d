"""What the drivers of a worker get to know about its membership in the group."""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.connect.distributed.worker_group_member import WorkerGroupMember


class Membership(NamedTuple):
    """Until when no other worker gets the share of this one, and whether there is another one."""

    valid_until: float
    is_alone: bool


def membership_of(member: WorkerGroupMember) -> Membership:
    """Return the membership as it is now."""
    assignment = member.assignment()
    is_alone = assignment is not None and len(assignment.shares) == 1
    return Membership(member.valid_until(), is_alone)
