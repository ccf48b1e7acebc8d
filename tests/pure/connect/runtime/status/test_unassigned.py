"""Which statuses become UNASSIGNED, and which are removed, after a rebalance."""

from __future__ import annotations

import pytest

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.runtime.own_share import OwnShare
from sparkmirror.connect.runtime.status.unassigned import is_left_behind, is_unassigned_due
from sparkmirror.mirror.connect_topics.connect_statuses import ConnectStatus, LifecycleState
from tests.support.rest.worker_group import two_worker_assignment

URLS = {"leader:1": "http://leader:1", "follower:1": "http://follower:1"}
TASKS = {
    "leader:1": [ConnectorTaskId(connector="c", task=0)],
    "follower:1": [ConnectorTaskId(connector="c", task=1)],
}


def assignment(own: str) -> Assignment:
    return two_worker_assignment(own, URLS, TASKS)


def status(
    task: int | None, worker: str, state: LifecycleState = LifecycleState.RUNNING
) -> ConnectStatus:
    return ConnectStatus(connector="c", task=task, state=state, worker_id=worker, generation=1)


def is_due(own: str, found: ConnectStatus, before: OwnShare | None = None) -> bool:
    now = assignment(own)
    return is_unassigned_due(before or OwnShare(), OwnShare(now), now, found)


def test_a_worker_unassigns_what_comes_to_it_and_not_what_it_had() -> None:
    assert is_due("follower:1", status(1, "lost:1"))
    assert not is_due("follower:1", status(1, "lost:1"), OwnShare(assignment("follower:1")))


@pytest.mark.parametrize(
    ("found", "due"),
    [
        pytest.param(status(2, "lost:1"), True, id="no worker runs the task of a lost one"),
        pytest.param(status(2, "follower:1"), False, id="a present worker writes it itself"),
        pytest.param(
            status(2, "lost:1", LifecycleState.UNASSIGNED), False, id="it is UNASSIGNED already"
        ),
        pytest.param(status(1, "lost:1"), False, id="its new owner writes it"),
    ],
)
def test_the_leader_unassigns_what_a_lost_worker_has_left(found: ConnectStatus, due: bool) -> None:
    assert is_due("leader:1", found) is due
    assert not is_due("follower:1", status(2, "lost:1"))


def test_only_a_worker_that_is_gone_or_runs_nothing_of_it_leaves_a_deleted_connector_behind() -> (
    None
):
    now = assignment("leader:1")
    assert is_left_behind(now, (), status(None, "lost:1"))
    assert not is_left_behind(now, (), status(None, "follower:1"))
    assert is_left_behind(now, (), status(None, "leader:1"))
    assert not is_left_behind(now, ("c",), status(None, "leader:1"))
