"""Herders of one group on real brokers: shares, faults, statuses, requests."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator

import pytest

from sparkmirror.cluster.produce_and_consume import ProducerRecord, produce_records
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.errors import NotLeader, NotOwner
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConfigRecord,
    ConnectorConfig,
    TaskConfig,
    TasksCommit,
)
from sparkmirror.wire.protocol.group_membership import describe_members, leave_group
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, named_config
from tests.support.connect.worker_group import HerderGroup
from tests.support.kafka.clusters import (
    SharedCluster,
    UniqueName,
    create_topic,
)
from tests.support.waiting import wait_until

TASKS = 4


@pytest.fixture
def group(primary: SharedCluster, unique_name: UniqueName) -> Iterator[HerderGroup]:
    made = HerderGroup(primary, unique_name("workers"))
    yield made
    made.stop_all()


@pytest.fixture(scope="module")
def started_pair(shared_clusters: dict[str, SharedCluster]) -> Iterator[HerderGroup]:
    """Use `pair` instead."""
    made = HerderGroup(shared_clusters["primary"], f"pair.{secrets.token_hex(3)}")
    made.start("w1")
    made.start("w2")
    yield made
    made.stop_all()


@pytest.fixture
def pair(started_pair: HerderGroup) -> Iterator[HerderGroup]:
    """Two workers that tests share. The first one leads. A test leaves no connector behind."""
    yield started_pair
    herder = started_pair.leader()
    names = herder.connectors()
    for name in names:
        herder.delete_connector(name)
    wait_until(
        lambda: not any(started_pair.running_tasks(name) for name in names), "all tasks to end"
    )


@pytest.fixture
def name() -> str:
    """A name for a connector that no other test uses."""
    return f"c-{secrets.token_hex(3)}"


def create(group: HerderGroup, name: str = "c") -> None:
    config = named_config(name, SOURCE_CONFIG, tasks__max=str(TASKS))
    group.leader().create_connector(name, config, None)


def wait_for_shares(group: HerderGroup, *shares: int, name: str = "c") -> None:
    """Wait until every task runs once, divided like this by the statuses of every worker."""
    expected = sorted(shares)
    wait_until(
        lambda: (
            group.running_tasks(name) == list(range(TASKS))
            and sorted(Counter(group.owners(name)).values()) == expected
        ),
        f"shares {expected}, not {group.owners(name)}",
    )


def assignment_of(group: HerderGroup, worker_id: str) -> Assignment:
    found = group.workers[worker_id].herder.assignment()
    assert found is not None
    return found


def has_restarted(group: HerderGroup, worker_id: str, name: str) -> bool:
    """Whether a worker has restarted its share of the tasks."""
    own = assignment_of(group, worker_id).own_share.task_numbers(name)
    return f"restart tasks {name} {sorted(own)}" in group.workers[worker_id].probe.calls


def test_three_workers_share_the_tasks_and_a_leaving_one_gives_its_share_back(
    group: HerderGroup,
) -> None:
    group.start("w1")
    create(group)
    wait_for_shares(group, TASKS)
    group.start("w2")
    wait_for_shares(group, 2, 2)
    group.start("w3")
    wait_for_shares(group, 2, 1, 1)
    wait_until(
        lambda: all(
            worker.states("c") == ["RUNNING"] * (TASKS + 1) for worker in group.workers.values()
        ),
        "every worker to have the same view",
    )
    group.stop("w2")
    wait_for_shares(group, 2, 2)
    group.stop("w1")
    wait_for_shares(group, TASKS)
    assert set(group.owners("c")) == {"w3"}


def test_a_task_that_need_not_move_keeps_running(group: HerderGroup) -> None:
    first = group.start("w1")
    create(group)
    wait_for_shares(group, TASKS)
    group.start("w2")
    wait_for_shares(group, 2, 2)
    assert len(first.probe.task_groups["c"]) == 1
    assert "stop tasks c" not in first.probe.calls
    assert "restart" not in " ".join(first.probe.calls)


def test_the_whole_group_restarts_with_a_higher_generation(group: HerderGroup) -> None:
    group.start("w1")
    group.start("w2")
    create(group)
    wait_for_shares(group, 2, 2)
    before = assignment_of(group, "w1").generation
    group.stop_all()
    group.start("w2")
    group.start("w1")
    wait_for_shares(group, 2, 2)
    assert assignment_of(group, "w1").generation > before


def test_a_worker_that_was_away_past_its_session_stops_and_comes_back(
    pair: HerderGroup, name: str, primary: SharedCluster
) -> None:
    second = pair.workers["w2"]
    create(pair, name)
    wait_for_shares(pair, 2, 2, name=name)
    stops = second.probe.calls.count(f"stop tasks {name}")
    router = primary.access.new_router()
    try:
        group_id = pair.group_id
        (expired,) = [
            one.member_id
            for one in describe_members(router, group_id).members
            if one.client_id == "client-w2"
        ]
        leave_group(router, group_id, [expired])
    finally:
        router.close()
    wait_until(
        lambda: second.probe.calls.count(f"stop tasks {name}") > stops, "the second worker to stop"
    )
    wait_for_shares(pair, 2, 2, name=name)


def test_a_connector_owned_by_a_follower_gets_its_tasks_through_the_leader(
    pair: HerderGroup, name: str
) -> None:
    names = (name, f"{name}-other")
    for one in names:
        create(pair, one)
    for one in names:
        wait_for_shares(pair, 2, 2, name=one)
    owners = {worker: assignment_of(pair, worker).own_share.connectors for worker in pair.workers}
    assert sorted(len(connectors) for connectors in owners.values()) == [1, 1]


def test_a_follower_names_the_leader_and_the_owner(pair: HerderGroup, name: str) -> None:
    follower = pair.workers["w2"].herder
    create(pair, name)
    wait_for_shares(pair, 2, 2, name=name)
    with pytest.raises(NotLeader, match="w1"):
        follower.delete_connector(name)
    with pytest.raises(NotLeader, match="w1"):
        follower.create_connector("e", named_config("e", SOURCE_CONFIG), None)
    table = assignment_of(pair, "w2")
    own = min(table.own_share.task_numbers(name))
    other = min(table.leader.task_numbers(name))
    with pytest.raises(NotOwner, match="w1"):
        follower.restart_task(name, other)
    follower.restart_task(name, own)
    assert f"restart tasks {name} [{own}]" in pair.workers["w2"].probe.calls
    follower.pause_connector(name)
    wait_until(lambda: set(pair.workers["w1"].states(name)) == {"PAUSED"}, "both workers to pause")


def test_a_restart_with_tasks_restarts_the_tasks_of_every_worker(
    pair: HerderGroup, name: str
) -> None:
    create(pair, name)
    wait_for_shares(pair, 2, 2, name=name)
    pair.leader().restart_connector_and_tasks(name, include_tasks=True, only_failed=False)
    wait_until(lambda: all(has_restarted(pair, one, name) for one in pair.workers), "all restarts")
    wait_for_shares(pair, 2, 2, name=name)


def test_a_deleted_connector_leaves_no_status_on_any_worker(pair: HerderGroup, name: str) -> None:
    create(pair, name)
    wait_for_shares(pair, 2, 2, name=name)
    pair.leader().delete_connector(name)
    wait_until(
        lambda: all(
            worker.states(name) == [] and not worker.probe.running(name)
            for worker in pair.workers.values()
        ),
        "no status and no task",
    )
    create(pair, name)
    wait_for_shares(pair, 2, 2, name=name)


def compacted_configs(*tasks: int) -> list[ProducerRecord]:
    """A config topic after compaction: two task configs take effect, if both are there."""
    config = {**named_config("c", SOURCE_CONFIG, tasks__max="2")}
    records: list[ConfigRecord] = [
        ConnectorConfig(connector="c", properties=config),
        *(TaskConfig(connector="c", task=task, properties=config) for task in tasks),
        TasksCommit(connector="c", tasks=2),
    ]
    return [
        ProducerRecord(key=one.key, value=one.value) for one in (each.encode() for each in records)
    ]


@pytest.mark.parametrize("tasks", [(2, 3, 0, 1), (1,)], ids=["larger set left", "task removed"])
def test_a_group_that_finds_a_compacted_config_topic_runs_all_tasks(
    primary: SharedCluster, unique_name: UniqueName, tasks: tuple[int, ...]
) -> None:
    name = unique_name("workers")
    create_topic(primary.access, f"{name}-config", configs={"cleanup.policy": "compact"})
    produce_records(primary.access, f"{name}-config", compacted_configs(*tasks))
    group = HerderGroup(primary, name)
    try:
        group.start("w1")
        group.start("w2")
        wait_until(
            lambda: group.running_tasks("c") == [0, 1] and set(group.owners("c")) == {"w1", "w2"},
            "one task on each worker",
        )
    finally:
        group.stop_all()
