"""Workers with one `group.id`: they share connectors and tasks, and survive each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from kafka.admin import ACLOperation, ResourceType

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState
from sparkmirror.errors import ConfigError, LeadershipLost, NewerWorker
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.group_membership import (
    GroupProtocol,
    JoinedGroup,
    describe_members,
    join_group,
    leave_group,
    sync_group,
)
from sparkmirror.worker.group.group_settings import WorkerGroupSettings
from sparkmirror.worker.group.spark_prestart import SparkPrestart
from sparkmirror.worker.group.worker_coordinator import WorkerCoordinator
from tests.support.kafka.admin_operations import denied, grant_acls
from tests.support.kafka.clusters import SharedCluster, UniqueName, create_topic
from tests.support.kafka.group_members import group_member
from tests.support.waiting import wait_until

TASKS = 6


class Member:
    """A member that runs what it is assigned: connector `c` and its tasks."""

    def __init__(
        self,
        cluster: SharedCluster,
        group: str,
        worker_id: str,
        *,
        state_version: int = 1,
        is_exclusive: bool = False,
        max_delay_ms: int = 0,
        readiness: SparkPrestart | None = None,
    ) -> None:
        self.worker_id = worker_id
        self.task_count = TASKS
        self.running: frozenset[ConnectorTaskId] = frozenset()
        self.history: list[str] = []
        self.failures: list[Exception] = []
        self.release_stop = threading.Event()
        self.release_stop.set()
        self._state_version = state_version
        self.coordinator = WorkerCoordinator(
            WorkerGroupSettings(
                group_id=group, is_exclusive=is_exclusive, max_delay_ms=max_delay_ms
            ),
            cluster.access,
            f"client-{worker_id}",
            readiness,
        )
        self.coordinator.start(self, self._state, self._configured)

    def _state(self) -> WorkerState:
        assignment = self.coordinator.assignment()
        share = assignment.own_share if assignment else None
        return WorkerState(
            worker_id=self.worker_id,
            url=f"http://{self.worker_id}/",
            config_offset=self.task_count,
            connectors=share.connectors if share else frozenset(),
            tasks=share.tasks if share else frozenset(),
            state_version=self._state_version,
        )

    def _configured(self, min_offset: int) -> ConfiguredWork:
        return ConfiguredWork(task_counts={"c": max(self.task_count, min_offset)})

    def is_prepared(self) -> bool:
        return True

    def on_assigned(self, assignment: Assignment) -> None:
        self.history.append("assigned")
        self.running = assignment.own_share.tasks

    def on_revoked(self, connectors: Collection[str], tasks: Collection[ConnectorTaskId]) -> None:
        assert not self.running & set(tasks)
        self.release_stop.wait(50)
        self.history.append("revoked")

    def on_lost(self) -> None:
        self.history.append("lost")
        self.running = frozenset()

    def on_failed(self, error: Exception) -> None:
        self.failures.append(error)

    def tasks(self) -> int:
        return len(self.running)

    def leave(self) -> None:
        self.coordinator.leave()


@pytest.fixture
def router(primary: SharedCluster) -> Iterator[Router]:
    made = primary.access.new_router()
    yield made
    made.close()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def joined(stack: ExitStack, member: Member, tasks: int) -> Member:
    stack.callback(member.leave)
    wait_until(lambda: member.tasks() == tasks, f"{member.worker_id} to run {tasks} tasks")
    return member


def owners(*members: Member) -> list[int]:
    """The numbers of the tasks that the members run, each as often as it runs."""
    return sorted(task.task for member in members for task in member.running)


def expire_session(router: Router, group: str, member: Member) -> None:
    """End the session of a member as its coordinator does when heartbeats stop."""
    found = describe_members(router, group).members
    expired = [one.member_id for one in found if one.client_id == f"client-{member.worker_id}"]
    leave_group(router, group, expired)


def test_workers_share_tasks_and_every_member_knows_every_owner(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    second = joined(stack, Member(primary, group, "w2"), TASKS // 2)
    third = joined(stack, Member(primary, group, "w3"), TASKS // 3)
    members = (first, second, third)
    wait_until(lambda: [one.tasks() for one in members] == [2, 2, 2], "equal shares")
    assert owners(*members) == list(range(TASKS))
    expected = {
        task: (member.worker_id, f"http://{member.worker_id}/")
        for member in members
        for task in member.running
    }

    def knows_every_owner(member: Member) -> bool:
        table = member.coordinator.assignment()
        found = {task: table.owner_of_task(task) for task in expected} if table else {}
        known = {task: (owner.worker_id, owner.url) for task, owner in found.items() if owner}
        return known == expected

    for member in members:
        # While tasks move, a table has no owner for them.
        wait_until(partial(knows_every_owner, member), "every owner")
        table = member.coordinator.assignment()
        assert table is not None
        assert table.leader.worker_id == "w1"
    assert "lost" not in first.history + second.history + third.history


def test_a_task_is_assigned_to_another_worker_only_after_it_has_stopped(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    first.release_stop.clear()
    second = Member(primary, group, "w2")
    stack.callback(second.leave)
    wait_until(lambda: second.history == ["assigned"], "the second to join")
    wait_until(lambda: first.tasks() == TASKS // 2, "the first to stop")
    valid_until = first.coordinator.valid_until()
    wait_until(lambda: first.coordinator.valid_until() > valid_until, "heartbeats while it stops")
    assert second.tasks() == 0
    first.release_stop.set()
    wait_until(lambda: second.tasks() == TASKS // 2, "the second to take over")


class SlowSpark:
    """Spark that is ready when the test says so."""

    def __init__(self) -> None:
        self.ready = False
        self.kept: list[int] = []

    def keep_ready(self, group: str, tasks: int) -> None:
        self.kept.append(tasks)

    def is_ready(self) -> bool:
        return self.ready


def test_a_worker_joins_others_when_its_spark_is_ready_and_gives_up_the_place_of_a_killed_one(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack, router: Router
) -> None:
    group, spark = unique_name("workers"), SlowSpark()
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    killed = joined(stack, Member(primary, group, "w2"), TASKS // 2)
    readiness = SparkPrestart(group, spark, lambda: TASKS)
    successor = Member(primary, group, "w2", readiness=readiness)
    stack.callback(successor.leave)
    wait_until(lambda: "lost" in killed.history, "the killed one to have no place any more")
    killed.leave()
    wait_until(lambda: first.tasks() == TASKS, "the first to take everything over")
    assert "Spark starts" in successor.coordinator.problem()
    assert spark.kept == [TASKS] * len(spark.kept)
    assert not successor.history
    spark.ready = True
    wait_until(lambda: successor.tasks() == TASKS // 2, "the successor to take its share")
    assert not successor.coordinator.problem()
    first.leave()
    wait_until(lambda: successor.tasks() == TASKS, "the successor to be alone")
    wait_until(lambda: spark.kept[-1] == 0, "Spark to be kept for no other worker")


def test_a_changed_config_that_only_a_follower_has_read_is_divided_again(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    second = joined(stack, Member(primary, group, "w2"), TASKS // 2)
    second.task_count = TASKS + 2
    second.coordinator.request_rejoin("two tasks more")
    wait_until(lambda: owners(first, second) == list(range(TASKS + 2)), "all tasks to run")
    assert {first.tasks(), second.tasks()} == {TASKS // 2 + 1}


def test_other_workers_take_over_at_once_when_a_worker_leaves(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    second = joined(stack, Member(primary, group, "w2"), TASKS // 2)
    first.leave()
    wait_until(lambda: second.tasks() == TASKS, "the second to run everything")
    assignment = second.coordinator.assignment()
    assert assignment is not None
    assert assignment.is_leader


def test_a_lost_worker_stops_everything_and_joins_again(
    primary: SharedCluster, router: Router, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    second = joined(stack, Member(primary, group, "w2"), TASKS // 2)
    wait_until(lambda: first.tasks() == TASKS // 2, "equal shares")
    expire_session(router, group, second)
    wait_until(lambda: "lost" in second.history, "the second to notice")
    wait_until(lambda: second.tasks() == TASKS // 2, "the second to be back")
    wait_until(lambda: owners(first, second) == list(range(TASKS)), "each task to run once")
    assert (first.failures, second.failures) == ([], [])


def test_a_lone_worker_whose_session_is_over_goes_on_without_a_stop(
    primary: SharedCluster, router: Router, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    expire_session(router, group, first)
    wait_until(lambda: len(first.history) == 2, "the worker to be a member again")
    assert first.history == ["assigned", "assigned"]
    assert first.tasks() == TASKS


def test_the_work_of_a_lost_worker_is_held_for_it_during_the_delay(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1", max_delay_ms=600_000), TASKS)
    second = joined(stack, Member(primary, group, "w2", max_delay_ms=600_000), TASKS // 2)
    before = second.running
    second.leave()
    wait_until(lambda: delay_ms(first) > 0, "the first to hold the work")
    assert first.tasks() == TASKS // 2
    returned = joined(stack, Member(primary, group, "w2"), TASKS // 2)
    assert returned.running == before
    wait_until(lambda: delay_ms(first) == 0, "nothing to be held")


def delay_ms(member: Member) -> int:
    assignment = member.coordinator.assignment()
    return assignment.delay_ms if assignment else 0


def test_a_restarted_worker_takes_over_the_member_id_of_the_killed_one(
    primary: SharedCluster, router: Router, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    killed = primary.access.new_router("client-w1")
    stack.callback(killed.close)
    place = join_group(killed, our_protocol(group))
    assert isinstance(place, JoinedGroup)
    sync_group(killed, group, place, {place.member_id: b""})
    (before,) = describe_members(router, group).members
    restarted = joined(stack, Member(primary, group, "w1"), TASKS)
    assert describe_members(router, group).members == (before,)
    assert restarted.history == ["assigned"]


def test_an_exclusive_worker_waits_until_the_other_one_has_left(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1", is_exclusive=True), TASKS)
    second = Member(primary, group, "w2", is_exclusive=True)
    stack.callback(second.leave)
    wait_until(lambda: second.coordinator.problem() != "", "the second to notice the first")
    assert f"group {group} has a worker already: client-w1 at " in second.coordinator.problem()
    assert (first.tasks(), second.tasks()) == (TASKS, 0)
    first.leave()
    wait_until(lambda: second.tasks() == TASKS, "the second to take over")
    assert second.coordinator.problem() == ""


def test_an_exclusive_worker_ends_if_another_one_has_taken_over(
    primary: SharedCluster, router: Router, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1", is_exclusive=True), TASKS)
    second = Member(primary, group, "w2", is_exclusive=True)
    stack.callback(second.leave)
    wait_until(lambda: second.coordinator.problem() != "", "the second to notice the first")

    def first_has_ended() -> bool:
        if not second.tasks():
            expire_session(router, group, first)
        return bool(first.failures)

    wait_until(first_has_ended, "the first to notice the second")
    (error,) = first.failures
    assert isinstance(error, LeadershipLost)
    assert "client-w2 at " in str(error)


def our_protocol(group: str) -> GroupProtocol:
    return GroupProtocol(
        group_id=group,
        protocol_type="connect",
        protocol="sparkmirror",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=1_000,
    )


def java_protocol(group: str) -> GroupProtocol:
    return GroupProtocol(
        group_id=group,
        protocol_type="connect",
        protocol="sessioned",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
    )


def test_a_java_worker_in_the_group_is_named_and_waited_for(
    primary: SharedCluster, router: Router, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    java = join_group(router, java_protocol(group))
    assert isinstance(java, JoinedGroup)
    assert isinstance(sync_group(router, group, java, {}), bytes)
    ours = Member(primary, group, "w1")
    stack.callback(ours.leave)
    wait_until(lambda: "a Java worker already" in ours.coordinator.problem(), "it to be named")
    assert ours.history == []
    leave_group(router, group, [java.member_id])
    wait_until(lambda: ours.tasks() == TASKS, "the worker to run")


def test_kafka_refuses_a_java_worker_in_a_group_of_ours(
    primary: SharedCluster, router: Router, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    joined(stack, Member(primary, group, "w1"), TASKS)
    refusal = join_group(router, java_protocol(group))
    assert not isinstance(refusal, JoinedGroup)
    assert refusal.name == "INCONSISTENT_GROUP_PROTOCOL"


def test_a_worker_of_the_version_without_shares_is_named_and_waited_for(
    primary: SharedCluster, router: Router, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    protocol = our_protocol(group)
    older = join_group(router, protocol)
    assert isinstance(older, JoinedGroup)
    sync_group(router, group, older, {older.member_id: b""})
    ours = Member(primary, group, "w1")
    stack.callback(ours.leave)

    def is_waiting() -> bool:
        """The older worker joins again, leads, and sends its empty assignment."""
        again = join_group(router, protocol, older.member_id)
        if isinstance(again, JoinedGroup) and again.is_leader:
            sync_group(router, group, again, dict.fromkeys(again.metadata, b""))
        return "a worker of an earlier version" in ours.coordinator.problem()

    wait_until(is_waiting, "it to be named")
    leave_group(router, group, [older.member_id])
    wait_until(lambda: ours.tasks() == TASKS, "the worker to run")


def test_a_worker_that_finds_a_newer_one_ends_and_names_it(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    newer = Member(primary, group, "w2", state_version=2)
    stack.callback(newer.leave)
    wait_until(lambda: bool(first.failures), "the older worker to end")
    (error,) = first.failures
    assert isinstance(error, NewerWorker)
    assert "worker w2 of this group has state of version 2" in str(error)


def test_a_group_of_consumers_is_no_group_of_workers(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group, topic = unique_name("group"), unique_name("topic")
    create_topic(primary.access, topic)
    with group_member(primary, group, topic):
        member = Member(primary, group, "w1")
        stack.callback(member.leave)
        wait_until(lambda: bool(member.failures), "the worker to end")
    (error,) = member.failures
    assert isinstance(error, ConfigError)
    assert "members of type consumer" in str(error)


def test_two_workers_with_one_address_are_warned(
    primary: SharedCluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    first = joined(stack, Member(primary, group, "w1"), TASKS)
    second = Member(primary, group, "w1-other")
    second.worker_id = "w1"
    stack.callback(second.leave)
    wait_until(lambda: "have the address w1" in first.coordinator.warning(), "a warning")


def test_a_worker_without_the_right_to_its_group_runs_with_a_warning_until_it_is_granted(
    cluster_with_authorizer: Cluster, unique_name: UniqueName, stack: ExitStack
) -> None:
    group = unique_name("workers")
    properties = cluster_with_authorizer.client_properties(user="bob")
    alice = cluster_with_authorizer.access(user="alice")
    west = SharedCluster(name="west", properties=properties)
    member = joined(stack, Member(west, group, "w1"), TASKS)
    coordinator = member.coordinator
    assert coordinator.warning().startswith(
        f"a second worker of group {group} would not be noticed: west: "
    )
    assert "grant Describe on the group" in coordinator.warning()
    assert coordinator.problem() == ""
    member.task_count += 1
    coordinator.request_rejoin("a task more")
    wait_until(lambda: member.tasks() == TASKS + 1, "the new task to run")
    grant_acls(alice, "bob", ResourceType.GROUP, group, ACLOperation.READ)
    wait_until(lambda: coordinator.warning() == "", "the worker to join")
    with denied(alice, "bob", ResourceType.GROUP, group, ACLOperation.READ):
        wait_until(
            lambda: "grant Read on the group" in coordinator.warning(), "a refused heartbeat"
        )
    wait_until(lambda: coordinator.warning() == "", "the worker to be a member again")
    assert member.failures == []
    assert "lost" not in member.history
    assert coordinator.valid_until() > time.monotonic()
