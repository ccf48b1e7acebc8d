"""Partitions and groups are assigned to tasks as in MirrorMaker 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import ClusterTimeout
from sparkmirror.mirror.topics.task_assignment import (
    ASSIGNED_GROUPS,
    ASSIGNED_PARTITIONS,
    TASK_INDEX,
    assign_contiguous,
    assign_round_robin,
    assigned_groups,
    assigned_partitions,
    checkpoint_task_configs,
    heartbeat_task_configs,
    sorted_unique,
    source_task_configs,
)
from sparkmirror.model import TopicPartition
from tests.support.connect.replication_rules import all_partitions
from tests.support.golden import golden_json

RECORDED: dict[str, Any] = golden_json("vectors/task-assignment.json")
CONNECTOR: dict[str, str] = RECORDED["connector_config"]
ONE = [TopicPartition("t", 0)]


def test_partitions_are_assigned_to_source_tasks_as_recorded() -> None:
    assert len(RECORDED["source"]) > 50
    for case in RECORDED["source"]:
        given_order = [TopicPartition.parse(text) for text in case["partitions"]]
        configs = source_task_configs(CONNECTOR, given_order, tasks_max=case["max_tasks"])
        found = [[config[TASK_INDEX], config[ASSIGNED_PARTITIONS]] for config in configs]
        assert found == case["task_index_and_assigned"]


def test_groups_are_assigned_to_checkpoint_tasks_as_recorded() -> None:
    assert len(RECORDED["checkpoint"]) > 20
    for case in RECORDED["checkpoint"]:
        configs = checkpoint_task_configs(CONNECTOR, case["groups"], tasks_max=case["max_tasks"])
        found = [[config[TASK_INDEX], config[ASSIGNED_GROUPS]] for config in configs]
        assert found == case["task_index_and_assigned"]


def test_a_task_config_is_the_connectors_with_two_more_keys() -> None:
    two = [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert (
        list(source_task_configs(CONNECTOR, two, tasks_max=2))
        == (RECORDED["source_full_task_configs"])
    )


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        (switch, expected)
        for switch, expected in RECORDED["number_of_tasks_by_switch"].items()
        if switch != "none"
    ],
    ids=["disabled", "no-checkpoints", "no-heartbeats"],
)
def test_disabled_features_give_the_recorded_number_of_tasks(
    switch: str, expected: dict[str, Any]
) -> None:
    enabled = switch != "enabled=false"
    emit_checkpoints = switch != "emit.checkpoints.enabled=false"
    emit_heartbeats = switch != "emit.heartbeats.enabled=false"
    source = source_task_configs(CONNECTOR, ONE, tasks_max=1, enabled=enabled)
    assert len(source) == expected["source"]
    heartbeat = heartbeat_task_configs(CONNECTOR, emit_heartbeats=emit_heartbeats)
    assert len(heartbeat) == expected["heartbeat"]

    def checkpoint(groups: list[str] | None) -> int:
        configs = checkpoint_task_configs(
            CONNECTOR, groups, tasks_max=1, enabled=enabled, emit_checkpoints=emit_checkpoints
        )
        return len(configs)

    assert checkpoint(["g"]) == expected["checkpoint"]
    never_loaded = expected["checkpoint_groups_never_loaded"]
    if isinstance(never_loaded, int):
        assert checkpoint(None) == never_loaded
    else:
        with pytest.raises(ClusterTimeout, match=never_loaded["message"]):
            checkpoint(None)


def test_the_heartbeat_task_has_the_connectors_config() -> None:
    expected = RECORDED["number_of_tasks_by_switch"]["none"]["heartbeat"]
    assert list(heartbeat_task_configs(CONNECTOR)) == expected


def test_mirror_source_connector_task_config() -> None:
    """Upstream's: twelve partitions of three topics for three tasks."""
    ordered = sorted_unique(all_partitions({"t0": 8, "t1": 2, "t2": 2}))
    configs = source_task_configs(CONNECTOR, ordered, tasks_max=3)
    assert [config[ASSIGNED_PARTITIONS] for config in configs] == [
        "t0-0,t0-3,t0-6,t1-1",
        "t0-1,t0-4,t0-7,t2-0",
        "t0-2,t0-5,t1-0,t2-1",
    ]


def test_task_config_topic_partitions() -> None:
    """Upstream's: a written list is read back, also names with dashes."""
    partitions = (
        TopicPartition("topic-1", 2),
        TopicPartition("topic-3", 4),
        TopicPartition("a", 0),
    )
    (config,) = source_task_configs(CONNECTOR, partitions, tasks_max=1)
    assert config[ASSIGNED_PARTITIONS] == "topic-1-2,topic-3-4,a-0"
    assert assigned_partitions(config) == partitions


def test_task_config_consumer_groups() -> None:
    """Upstream's: a written list is read back."""
    (config,) = checkpoint_task_configs(CONNECTOR, ["group-1", "group-2"], tasks_max=1)
    assert config[ASSIGNED_GROUPS] == "group-1,group-2"
    assert assigned_groups(config) == ("group-1", "group-2")


def test_lists_are_read_as_kafka_reads_them() -> None:
    assert assigned_groups({ASSIGNED_GROUPS: " a , b ,c "}) == ("a", "b", "c")
    assert assigned_groups({ASSIGNED_GROUPS: " "}) == ()
    assert assigned_partitions({}) == ()


class TestCheckpointConnector:
    def test_mirror_checkpoint_connector_disabled(self) -> None:
        assert checkpoint_task_configs(CONNECTOR, ["g"], tasks_max=1, emit_checkpoints=False) == ()

    def test_mirror_checkpoint_connector_enabled(self) -> None:
        (config,) = checkpoint_task_configs(CONNECTOR, ["g"], tasks_max=1, emit_checkpoints=True)
        assert assigned_groups(config) == ("g",)

    def test_no_consumer_group(self) -> None:
        assert checkpoint_task_configs(CONNECTOR, [], tasks_max=1) == ()

    def test_consumer_group_initialize_timeout(self) -> None:
        with pytest.raises(ClusterTimeout, match="Timeout while loading consumer groups") as caught:
            checkpoint_task_configs(CONNECTOR, None, tasks_max=1)
        assert caught.value.retriable
        assert caught.value.cluster == "A"

    def test_replication_disabled(self) -> None:
        assert checkpoint_task_configs(CONNECTOR, ["g"], tasks_max=1, enabled=False) == ()

    def test_replication_enabled(self) -> None:
        (config,) = checkpoint_task_configs(CONNECTOR, ["g"], tasks_max=1, enabled=True)
        assert assigned_groups(config) == ("g",)


class TestHeartbeatConnector:
    def test_mirror_heartbeat_connector_disabled(self) -> None:
        assert heartbeat_task_configs(CONNECTOR, emit_heartbeats=False) == ()

    def test_replication_disabled(self) -> None:
        assert len(heartbeat_task_configs(CONNECTOR | {"enabled": "false"})) == 1


Assignment = Callable[[Sequence[int], int], tuple[tuple[int, ...], ...]]


@pytest.mark.parametrize(
    "assign", [assign_round_robin, assign_contiguous], ids=["round-robin", "contiguous"]
)
@settings(max_examples=30)
@given(count=st.integers(0, 60), tasks_max=st.integers(1, 20))
def test_every_partition_is_assigned_once_and_evenly(
    assign: Assignment, count: int, tasks_max: int
) -> None:
    tasks = assign(range(count), tasks_max)
    assert len(tasks) == min(count, tasks_max)
    assert sorted(item for task in tasks for item in task) == list(range(count))
    sizes = [len(task) for task in tasks]
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert all(sizes)


@settings(max_examples=30)
@given(st.lists(st.builds(TopicPartition, st.text("ab-", max_size=3), st.integers(0, 12))))
def test_the_same_set_gives_the_same_configs(partitions: list[TopicPartition]) -> None:
    forth = source_task_configs(CONNECTOR, sorted_unique(partitions), tasks_max=3)
    back = source_task_configs(CONNECTOR, sorted_unique(reversed(partitions)), tasks_max=3)
    assert forth == back
    read = {partition for config in forth for partition in assigned_partitions(config)}
    assert read == set(partitions)


def test_partitions_are_ordered_by_number_not_by_text() -> None:
    assert sorted_unique([TopicPartition("t", 10), TopicPartition("t", 9)]) == (("t", 9), ("t", 10))
