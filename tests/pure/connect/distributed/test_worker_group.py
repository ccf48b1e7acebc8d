"""Which worker a request must go to."""

from __future__ import annotations

import pytest

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.leader_requests import NoLeaderRequests
from sparkmirror.connect.distributed.sole_member import SoleMember
from sparkmirror.connect.distributed.worker_group import WorkerGroup
from sparkmirror.connect.runtime.fencing.zombie_fencing_request import ZombieFencingRequest
from sparkmirror.errors import ConnectRestError, NotLeader, NotOwner, RebalanceNeeded, RequestFailed

OWN = ConnectorTaskId(connector="c", task=0)
OTHER = ConnectorTaskId(connector="c", task=1)


class FixedMember(SoleMember):
    """A member with a given assignment."""

    def __init__(self, assignment: Assignment | None) -> None:
        super().__init__()
        self._assignment = assignment


def worker_group(leader: str = "m2", *, is_member: bool = True) -> WorkerGroup:
    table = Assignment(
        generation=1,
        member_id="m1",
        leader_id=leader,
        config_offset=0,
        shares={
            "m1": MemberShare(
                worker_id="w1", url="u1", connectors=frozenset({"c"}), tasks=frozenset({OWN})
            ),
            "m2": MemberShare(
                worker_id="w2", url="u2", connectors=frozenset({"d"}), tasks=frozenset({OTHER})
            ),
        },
    )
    return WorkerGroup(FixedMember(table if is_member else None), NoLeaderRequests())


def test_only_the_leader_passes() -> None:
    worker_group("m1").require_leader()
    assert worker_group("m1").leader_url() == ""
    with pytest.raises(NotLeader) as caught:
        worker_group("m2").require_leader()
    assert caught.value.url == "u2"
    assert (worker_group("m1").is_leader(), worker_group("m2").is_leader()) == (True, False)


def test_only_the_owner_passes() -> None:
    group = worker_group()
    group.require_connector_owner("c")
    group.require_task_owner(OWN)
    with pytest.raises(NotOwner) as caught:
        group.require_connector_owner("d")
    assert caught.value.url == "u2"
    with pytest.raises(NotOwner):
        group.require_task_owner(OTHER)


def test_what_no_worker_runs_needs_a_rebalance() -> None:
    group = worker_group()
    with pytest.raises(RebalanceNeeded):
        group.require_connector_owner("new")
    with pytest.raises(RebalanceNeeded):
        group.require_task_owner(ConnectorTaskId(connector="c", task=7))
    outside = worker_group(is_member=False)
    for refused in (outside.require_leader, outside.leader_url, outside.assignment):
        with pytest.raises(RebalanceNeeded):
            refused()
    assert not outside.is_leader()


class FencingLeader(NoLeaderRequests):
    """A leader that does not answer at first."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.fenced: list[tuple[str, str]] = []

    def fence_zombies(self, leader_url: str, connector: str) -> None:
        if self.failures:
            self.failures -= 1
            raise RequestFailed("no answer")
        self.fenced.append((leader_url, connector))


def test_a_task_that_starts_is_fenced_by_the_leader_however_often_that_must_be_tried() -> None:
    here: list[str] = []
    leader = FencingLeader(failures=2)
    group = worker_group("m2")
    ZombieFencingRequest(WorkerGroup(group.member, leader), here.append)("c")
    assert (leader.fenced, here) == ([("u2", "c")], [])
    ZombieFencingRequest(WorkerGroup(worker_group("m1").member, leader), here.append)("c")
    assert here == ["c"]


def test_a_leader_without_the_connector_is_asked_once() -> None:
    asked: list[str] = []

    class OtherLeader(FencingLeader):
        def fence_zombies(self, leader_url: str, connector: str) -> None:
            asked.append(connector)
            raise ConnectRestError(leader_url, 404, f"Connector {connector} not found")

    group = WorkerGroup(worker_group("m2").member, OtherLeader(failures=0))
    with pytest.raises(ConnectRestError, match="not found"):
        ZombieFencingRequest(group, lambda _: None, timeout_s=1_000)("c")
    assert asked == ["c"]


def test_a_leader_that_never_answers_fails_the_start() -> None:
    group = WorkerGroup(worker_group("m2").member, FencingLeader(failures=1_000))
    with pytest.raises(RequestFailed, match="no answer"):
        ZombieFencingRequest(group, lambda _: None, timeout_s=0.0)("c")
