"""Two workers with one `group.id`: the second one notices the first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from kafka.admin import ACLOperation, ResourceType

from sparkmirror.errors import ConfigError, LeadershipLost
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.group_membership import describe_members, leave_group
from sparkmirror.worker.worker_group import WorkerGroup
from tests.support.kafka.admin_operations import denied, grant_acls
from tests.support.kafka.clusters import SharedCluster, UniqueName, create_topic
from tests.support.kafka.group_members import group_member
from tests.support.waiting import wait_until


class RunningMember:
    """A worker in a group, whose wait for its turn runs in a thread."""

    def __init__(self, cluster: SharedCluster, group: str, client_id: str) -> None:
        self.membership = WorkerGroup(group, cluster.access, client_id)
        self.lost: list[Exception] = []
        self.has_turn = threading.Event()
        self._thread = threading.Thread(target=self._await_turn, daemon=True)
        self._thread.start()

    def _await_turn(self) -> None:
        self.membership.await_turn(self.lost.append)
        self.has_turn.set()

    def stop(self) -> None:
        self.membership.leave()
        self._thread.join(50)


@pytest.fixture
def router(primary: SharedCluster) -> Iterator[Router]:
    made = primary.access.new_router()
    yield made
    made.close()


def client_ids(router: Router, group: str) -> list[str]:
    return [member.client_id for member in describe_members(router, group).members]


def test_a_second_worker_waits_until_the_first_has_left(
    primary: SharedCluster, router: Router, unique_name: UniqueName
) -> None:
    group = unique_name("workers")
    with ExitStack() as stack:
        first = RunningMember(primary, group, "first")
        stack.callback(first.stop)
        assert first.has_turn.wait(50)
        wait_until(lambda: client_ids(router, group) == ["first"], "the first to join")
        second = RunningMember(primary, group, "second")
        stack.callback(second.stop)
        wait_until(lambda: second.membership.problem() != "", "the second to notice the first")
        assert f"group {group} has a worker already: first at " in second.membership.problem()
        assert not second.has_turn.is_set()
        first.stop()
        assert second.has_turn.wait(50)
        assert second.membership.problem() == ""
        assert (first.lost, second.lost) == ([], [])


def test_a_restarted_worker_does_not_wait_for_the_session_of_the_killed_one(
    primary: SharedCluster, router: Router, unique_name: UniqueName
) -> None:
    group = unique_name("workers")
    with ExitStack() as stack:
        killed = RunningMember(primary, group, "same")
        stack.callback(killed.stop)
        wait_until(lambda: client_ids(router, group) == ["same"], "the first to join")
        (before,) = describe_members(router, group).members
        restarted = RunningMember(primary, group, "same")
        stack.callback(restarted.stop)
        assert restarted.has_turn.wait(50)
        assert before not in describe_members(router, group).members


def test_a_worker_whose_session_has_expired_ends_if_another_one_has_started(
    primary: SharedCluster, router: Router, unique_name: UniqueName
) -> None:
    group = unique_name("workers")
    with ExitStack() as stack:
        first = RunningMember(primary, group, "first")
        stack.callback(first.stop)
        wait_until(lambda: client_ids(router, group) == ["first"], "the first to join")
        second = RunningMember(primary, group, "second")
        stack.callback(second.stop)
        wait_until(lambda: second.membership.problem() != "", "the second to notice the first")

        def second_has_joined() -> bool:
            """Expire the session of the first until the second is the only member."""
            found = describe_members(router, group).members
            expired = [one.member_id for one in found if one.client_id == "first"]
            if expired:
                leave_group(router, group, expired)
            return second.has_turn.is_set() and client_ids(router, group) == ["second"]

        wait_until(lambda: second_has_joined() or bool(first.lost), "the second to take over")
        wait_until(lambda: bool(first.lost), "the first to notice")
        (error,) = first.lost
        assert isinstance(error, LeadershipLost)
        assert "second at " in str(error)
        assert second.lost == []


def test_a_group_of_consumers_is_no_group_of_workers(
    primary: SharedCluster, unique_name: UniqueName
) -> None:
    group, topic = unique_name("group"), unique_name("topic")
    create_topic(primary.access, topic)
    with (
        group_member(primary, group, topic),
        pytest.raises(ConfigError, match="members of type consumer"),
    ):
        WorkerGroup(group, primary.access, "worker").await_turn(lambda _error: None)


def test_a_worker_without_the_right_to_its_group_runs_with_a_warning_until_it_is_granted(
    cluster_with_authorizer: Cluster, unique_name: UniqueName
) -> None:
    group = unique_name("workers")
    properties = cluster_with_authorizer.client_properties(user="bob")
    alice = cluster_with_authorizer.access(user="alice")
    with ExitStack() as stack:
        member = RunningMember(SharedCluster(name="west", properties=properties), group, "worker")
        stack.callback(member.stop)
        assert member.has_turn.wait(50)
        membership = member.membership
        assert membership.warning().startswith(
            f"a second worker of group {group} would not be noticed: west: "
        )
        assert "grant Describe on the group" in membership.warning()
        assert membership.problem() == ""
        grant_acls(alice, "bob", ResourceType.GROUP, group, ACLOperation.READ)
        wait_until(lambda: membership.warning() == "", "the worker to join")
        with denied(alice, "bob", ResourceType.GROUP, group, ACLOperation.READ):
            wait_until(
                lambda: "grant Read on the group" in membership.warning(), "a refused heartbeat"
            )
        wait_until(lambda: membership.warning() == "", "the worker to be a member again")
        assert member.lost == []
