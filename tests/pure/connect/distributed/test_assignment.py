"""Who owns what by an assignment."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.leader_requests import NoLeaderRequests
from sparkmirror.connect.distributed.worker_state import ConfiguredWork
from sparkmirror.errors import NotLeader, NotOwner, RebalanceNeeded

TASK_0 = ConnectorTaskId(connector="orders", task=0)
TASK_1 = ConnectorTaskId(connector="orders", task=1)
FIRST = MemberShare(
    worker_id="w1:8083",
    url="http://w1:8083/",
    connectors=frozenset({"orders"}),
    tasks=frozenset({TASK_0}),
)
SECOND = MemberShare(worker_id="w2:8083", url="http://w2:8083/", tasks=frozenset({TASK_1}))


def assignment(member_id: str) -> Assignment:
    return Assignment(
        generation=3,
        member_id=member_id,
        leader_id="m1",
        config_offset=7,
        shares={"m1": FIRST, "m2": SECOND},
    )


def test_every_member_knows_the_leader_and_its_own_share() -> None:
    assert assignment("m1").is_leader
    assert not assignment("m2").is_leader
    assert assignment("m2").leader is FIRST
    assert assignment("m2").own_share is SECOND


def test_every_member_knows_the_owner_of_every_connector_and_task() -> None:
    one = assignment("m2")
    assert one.owner_of_connector("orders") is FIRST
    assert one.owner_of_task(TASK_1) is SECOND
    assert one.owner_of_connector("payments") is None
    assert one.owner_of_task(ConnectorTaskId(connector="orders", task=2)) is None


def test_a_share_names_the_tasks_of_one_connector() -> None:
    assert FIRST.task_numbers("orders") == {0}
    assert FIRST.task_numbers("payments") == frozenset()


@pytest.mark.parametrize(
    ("task_count", "delay_ms", "is_expected"),
    [(2, 0, False), (3, 0, True), (3, 60_000, False)],
    ids=["all have owners", "a member stops one", "one is held for a lost member"],
)
def test_another_round_follows_at_once_if_a_task_has_no_owner_and_is_not_held(
    task_count: int, delay_ms: int, is_expected: bool
) -> None:
    one = replace(assignment("m2"), task_counts={"orders": task_count}, delay_ms=delay_ms)
    assert one.is_round_expected == is_expected
    assert {task.task for task in one.unowned_tasks()} == set(range(2, task_count))


def test_a_member_with_a_revoked_task_must_join_again() -> None:
    assert not assignment("m1").has_revocations
    one = Assignment(
        generation=3,
        member_id="m1",
        leader_id="m1",
        config_offset=7,
        shares={"m1": FIRST},
        revoked_tasks=frozenset({TASK_1}),
    )
    assert one.has_revocations


def test_the_leader_and_the_receiver_are_members() -> None:
    with pytest.raises(AssertionError):
        assignment("m3")


def test_configured_work_counts_tasks_from_zero() -> None:
    work = ConfiguredWork(task_counts={"orders": 2, "idle": 0})
    assert work.tasks() == {TASK_0, TASK_1}


def test_the_errors_name_the_worker_to_ask_and_survive_a_process_boundary() -> None:
    for error in (NotLeader("http://w1:8083/"), NotOwner("http://w1:8083/")):
        copied = pickle.loads(pickle.dumps(error))
        assert (copied.url, str(copied)) == ("http://w1:8083/", str(error))
        assert "http://w1:8083/" in str(error)


def test_a_worker_that_is_always_the_leader_asks_no_other() -> None:
    with pytest.raises(RebalanceNeeded, match=r"conflicting operation \(e.g. worker rebalance\)"):
        NoLeaderRequests().put_task_configs("", "orders", [])
    with pytest.raises(RebalanceNeeded):
        NoLeaderRequests().fence_zombies("", "orders")
