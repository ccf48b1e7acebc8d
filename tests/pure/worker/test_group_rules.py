"""What a worker's file says of its group, and what the worker says of other members."""

from __future__ import annotations

import pytest

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.connect_protocol import decode_assignment, encode_state
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState
from sparkmirror.errors import ConfigError, NewerWorker
from sparkmirror.wire.protocol.group_membership import GroupMember, GroupMembers, JoinedGroup
from sparkmirror.worker.group import conflicting_members
from sparkmirror.worker.group.group_settings import WorkerGroupSettings
from sparkmirror.worker.group.leader_assignments import LeaderAssignments
from sparkmirror.worker.group.undivided_connectors import undivided_rule
from sparkmirror.worker.group.worker_coordinator import ROUND_S, next_round_expected_until

CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
FILE = {
    "bootstrap.servers": "b:9092",
    "group.id": "workers",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
    "key.converter": CONVERTER,
    "value.converter": CONVERTER,
}
SOURCE = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}
HEARTBEAT = {"connector.class": "MirrorHeartbeatConnector"}


def settings(**more: str) -> WorkerGroupSettings:
    file = {**FILE, **{key.replace("_", "."): value for key, value in more.items()}}
    return WorkerGroupSettings.from_config(DISTRIBUTED.parse(file), file)


@pytest.mark.parametrize(("task_count", "until"), [(0, 0.0), (1, 100.0 + ROUND_S)])
def test_a_member_expects_the_next_round_for_some_seconds_while_a_task_has_no_owner(
    task_count: int, until: float
) -> None:
    shares = {"m": MemberShare(worker_id="w:8083", url="http://w:8083/")}
    one = Assignment(
        generation=1,
        member_id="m",
        leader_id="m",
        config_offset=0,
        shares=shares,
        task_counts={"orders": task_count},
    )
    assert next_round_expected_until(one, now=100.0) == until


def test_without_keys_heartbeats_are_frequent_and_lost_work_is_not_held() -> None:
    found = settings()
    assert (found.group_id, found.heartbeat_interval_ms, found.max_delay_ms) == ("workers", 500, 0)
    assert (found.session_timeout_ms, found.rebalance_timeout_ms) == (10_000, 60_000)


def test_keys_of_the_file_are_obeyed_also_with_connects_defaults() -> None:
    found = settings(
        heartbeat_interval_ms="3000",
        scheduled_rebalance_max_delay_ms="300000",
        session_timeout_ms="20000",
        rebalance_timeout_ms="30000",
    )
    assert (found.heartbeat_interval_ms, found.max_delay_ms) == (3_000, 300_000)
    assert (found.session_timeout_ms, found.rebalance_timeout_ms) == (20_000, 30_000)


@pytest.mark.parametrize(
    ("servers", "more", "session_timeout_ms"),
    [
        ("my.servicebus.windows.net:9093", {}, 30_000),
        ("my.servicebus.windows.net:9093", {"session_timeout_ms": "10000"}, 10_000),
        ("kafka:9092", {}, 10_000),
    ],
)
def test_members_of_a_group_at_event_hubs_have_more_time(
    servers: str, more: dict[str, str], session_timeout_ms: int
) -> None:
    assert settings(bootstrap_servers=servers, **more).session_timeout_ms == session_timeout_ms


@pytest.mark.parametrize(
    ("worker_master", "connector", "expected"),
    [
        ("", SOURCE, False),
        ("local", SOURCE, False),
        ("local[4]", SOURCE, False),
        ("spark://m:7077", SOURCE, True),
        ("yarn", SOURCE, True),
        ("k8s://https://api", SOURCE, True),
        ("spark://m:7077", HEARTBEAT, False),
        ("", {**SOURCE, "spark.master": "spark://m:7077"}, True),
        ("spark://m:7077", {**SOURCE, "spark.master": "local[2]"}, False),
        ("spark://m:7077", {}, False),
    ],
)
def test_a_source_connector_on_a_spark_cluster_is_undivided(
    worker_master: str, connector: dict[str, str], *, expected: bool
) -> None:
    assert undivided_rule(worker_master)(connector) is expected


def members(protocol: str, protocol_type: str = "connect") -> GroupMembers:
    return GroupMembers(
        protocol_type=protocol_type,
        protocol=protocol,
        members=(GroupMember(member_id="m1", client_id="java-1", client_host="10.0.0.1"),),
    )


def test_members_of_another_type_are_a_fault_of_the_config() -> None:
    with pytest.raises(ConfigError, match="members of type consumer"):
        conflicting_members.check_protocol_type("g", members("range", "consumer"))
    conflicting_members.check_protocol_type("g", members("sparkmirror"))
    conflicting_members.check_protocol_type(
        "g", GroupMembers(protocol_type="consumer", protocol="", members=())
    )


def test_a_java_worker_is_named_with_what_to_do() -> None:
    found = members("sessioned")
    assert conflicting_members.has_java_worker(found)
    assert not conflicting_members.has_java_worker(members("sparkmirror"))
    own, others = conflicting_members.split_members(found, "mine")
    text = conflicting_members.refused_text("B", "g", found, others)
    assert own == []
    assert text.startswith("B: group g has a Java worker already: java-1 at 10.0.0.1. ")
    assert "stop the Java worker" in text


def test_a_second_node_without_internal_rest_gets_the_name_of_the_key() -> None:
    text = conflicting_members.refused_text("B", "A-mm2", members("sparkmirror"), ["x at h"])
    assert "group A-mm2 has a worker already: x at h" in text
    assert "dedicated.mode.enable.internal.rest=true" in text


def state(worker_id: str, version: int = 1) -> WorkerState:
    return WorkerState(worker_id=worker_id, url="u", config_offset=3, state_version=version)


def joined(**states: WorkerState | None) -> JoinedGroup:
    return JoinedGroup(
        member_id="m1",
        generation=5,
        leader="m1",
        metadata={
            member: b"" if one is None else encode_state(one) for member, one in states.items()
        },
    )


def test_the_leader_counts_generations_above_the_status_topic_and_its_last_assignment() -> None:
    leader = LeaderAssignments(0, is_exclusive=False)
    asked: list[int] = []

    def configured(min_offset: int) -> ConfiguredWork:
        asked.append(min_offset)
        return ConfiguredWork(task_counts={"c": 2}, config_offset=7, last_generation=40)

    group = joined(m1=state("w1"), m2=state("w2"))
    first = decode_assignment(leader.assign(group, configured, None)["m2"], "m2")
    assert first is not None
    assert (first.generation, first.config_offset, asked) == (41, 7, [3])
    second = decode_assignment(leader.assign(group, configured, first)["m1"], "m1")
    assert second is not None
    assert second.generation == 42


def test_an_exclusive_leader_gives_other_members_nothing() -> None:
    leader = LeaderAssignments(0, is_exclusive=True)
    work = ConfiguredWork(task_counts={"c": 2})
    sent = leader.assign(joined(m1=state("w1"), m2=state("w2")), lambda _: work, None)
    table = decode_assignment(sent["m2"], "m2")
    assert table is not None
    assert len(table.leader.tasks) == 2
    assert not table.own_share.tasks


def test_a_member_of_a_version_without_shares_gets_no_work() -> None:
    leader = LeaderAssignments(0, is_exclusive=False)
    work = ConfiguredWork(task_counts={"c": 2})
    sent = leader.assign(joined(m1=state("w1"), m2=None), lambda _: work, None)
    assert set(sent) == {"m1"}


def test_the_leader_refuses_a_member_of_a_newer_version() -> None:
    leader = LeaderAssignments(0, is_exclusive=False)
    with pytest.raises(NewerWorker, match="worker w2"):
        leader.assign(
            joined(m1=state("w1"), m2=state("w2", version=2)), lambda _: ConfiguredWork(), None
        )
