"""Which statuses a rebalance changes: what comes to this worker, and what lost workers have left.

A worker writes UNASSIGNED for what comes to it. The leader also does so for what a lost worker has
left and none runs, and it removes what a lost worker has left of connectors that were deleted. A
present worker does that itself, after the connector has stopped. Pure.
"""

from __future__ import annotations

from collections.abc import Container

from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.runtime.own_share import OwnShare
from sparkmirror.mirror.connect_topics.connect_statuses import ConnectStatus, LifecycleState


def is_unassigned_due(
    before: OwnShare, share: OwnShare, assignment: Assignment, status: ConnectStatus
) -> bool:
    """Return whether this worker writes UNASSIGNED for a connector or a task.

    `before` is the share of this worker until this assignment, `share` its share from now on.
    """
    if share.has(status.connector, status.task):
        return not before.has(status.connector, status.task)
    return (
        assignment.is_leader
        and not _is_present(assignment, status.worker_id)
        and status.state is not LifecycleState.UNASSIGNED
        and not assignment.has_owner(status.connector, status.task)
    )


def is_left_behind(assignment: Assignment, running: Container[str], status: ConnectStatus) -> bool:
    """Return whether no worker will remove the status of a connector that was deleted.

    `running` has the connectors that this worker runs something of.
    """
    if status.worker_id == assignment.own_share.worker_id:
        return status.connector not in running
    return not _is_present(assignment, status.worker_id)


def _is_present(assignment: Assignment, worker_id: str) -> bool:
    return any(share.worker_id == worker_id for share in assignment.shares.values())
