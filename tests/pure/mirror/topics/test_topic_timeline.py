"""Recorded changes of topics give the recorded remote topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from sparkmirror.mirror.topics.replication_policy import DefaultReplicationPolicy
from sparkmirror.mirror.topics.task_assignment import assign_round_robin
from sparkmirror.mirror.topics.topic_configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigSource,
    creation_configs,
    effective_operations,
    sync_operations,
)
from sparkmirror.mirror.topics.topic_plan import plan_topics
from sparkmirror.mirror.topics.topic_selection import TopicSelection, diff_topic_partitions
from sparkmirror.model import TopicPartition
from tests.support.connect.replication_rules import (
    all_partitions,
    config_property_filter_of,
    selection,
    topic_filter,
)
from tests.support.golden import golden_json

RECORDED: dict[str, Any] = golden_json("topics/topic-sync-timeline.json")
OVERRIDES: dict[str, str] = RECORDED["connector_overrides"]
WANTED = config_property_filter_of({})
KNOWN_CONFIGS = (
    "cleanup.policy",
    "flush.messages",
    "max.message.bytes",
    "message.timestamp.type",
    "min.insync.replicas",
    "retention.ms",
    "segment.ms",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)

    def entries(self) -> list[ConfigEntry]:
        """Return all configs as a broker describes them: those set on the topic, and defaults."""
        return [
            ConfigEntry(
                name=name,
                value=self.configs.get(name, "default"),
                source=ConfigSource.DYNAMIC_TOPIC_CONFIG
                if name in self.configs
                else ConfigSource.DEFAULT_CONFIG,
            )
            for name in KNOWN_CONFIGS
        ]


Cluster = dict[str, Topic]


class Replay:
    """Two clusters, and a source connector that refreshes its topics."""

    def __init__(self, *, only_changes: bool) -> None:
        scenario = golden_json("topics/scenario.json")["source_topics"]
        self.source: Cluster = {
            topic["topic"]: Topic(partitions=topic["partitions"], configs=topic["configs"])
            for topic in scenario
        }
        self.target: Cluster = {}
        self._known: frozenset[TopicPartition] = frozenset()
        self._only_changes = only_changes
        separator = OVERRIDES["replication.policy.separator"]
        self._rules: TopicSelection = selection(
            topic_filter(topics=OVERRIDES["topics"]),
            DefaultReplicationPolicy(separator=separator, internal_separator=separator),
        )

    def refresh(self) -> None:
        """Refresh topics, create remote topics and partitions, and sync configs."""
        source = self._rules.filter_source_partitions(partitions_of(self.source))
        target = self._rules.filter_target_partitions(partitions_of(self.target))
        found = diff_topic_partitions(
            self._rules, known_source=self._known, source=source, target=target
        )
        if found.needs_reconfiguration:
            self._known = source
            self._create_remote_topics(source, target)
        for topic in {partition.topic for partition in source}:
            self._sync_configs(topic)

    def _create_remote_topics(
        self, source: frozenset[TopicPartition], target: frozenset[TopicPartition]
    ) -> None:
        plan = plan_topics(self._rules, source=source, target=target, replication_factor=1)
        configs = {
            new.source_topic: creation_configs(self.source[new.source_topic].entries(), WANTED)
            for new in plan.new_topics
        }
        for new in plan.with_configs(configs).new_topics:
            self.target[new.name] = Topic(partitions=new.partitions, configs=dict(new.configs))
        for grown in plan.new_partitions:
            self.target[grown.name] = replace(self.target[grown.name], partitions=grown.partitions)

    def _sync_configs(self, topic: str) -> None:
        remote = self._rules.remote_partition(TopicPartition(topic, 0)).topic
        operations = sync_operations(self.source[topic].entries(), WANTED)
        if self._only_changes:
            operations = effective_operations(operations, self.target[remote].entries())
        for operation in operations:
            self.target[remote] = with_operation(self.target[remote], operation)


def partitions_of(cluster: Cluster) -> frozenset[TopicPartition]:
    return all_partitions({name: topic.partitions for name, topic in cluster.items()})


def with_operation(topic: Topic, operation: AlterConfigOp) -> Topic:
    configs = {name: value for name, value in topic.configs.items() if name != operation.name}
    if operation.operation is AlterConfigOpType.SET and operation.value is not None:
        configs[operation.name] = operation.value
    return replace(topic, configs=configs)


def set_on_source(replay: Replay) -> None:
    orders = replay.source["orders"]
    more = {
        "retention.ms": "123456789",
        "segment.ms": "99999999",
        "min.insync.replicas": "1",
        "message.timestamp.type": "LogAppendTime",
    }
    replay.source["orders"] = replace(orders, configs=orders.configs | more)


def set_on_target(replay: Replay) -> None:
    remote = replay.target["source_orders"]
    more = {"retention.ms": "5000000", "flush.messages": "1000", "min.insync.replicas": "1"}
    replay.target["source_orders"] = replace(remote, configs=remote.configs | more)


def reset_on_source(replay: Replay) -> None:
    orders = replay.source["orders"]
    rest = {name: value for name, value in orders.configs.items() if name != "retention.ms"}
    replay.source["orders"] = replace(orders, configs=rest)


def more_partitions(replay: Replay) -> None:
    replay.source["orders"] = replace(replay.source["orders"], partitions=5)


def late_topic(replay: Replay) -> None:
    configs = {"cleanup.policy": "compact,delete"}
    replay.source["late-topic"] = Topic(partitions=2, configs=configs)


def late_topic_deleted_and_created_again_by_a_consumer(replay: Replay) -> None:
    replay.source["late-topic"] = Topic(partitions=1)


def nothing(replay: Replay) -> None:
    pass


ACTIONS: tuple[Callable[[Replay], None], ...] = (
    nothing,
    nothing,
    set_on_source,
    set_on_target,
    reset_on_source,
    more_partitions,
    late_topic,
    late_topic_deleted_and_created_again_by_a_consumer,
)


@pytest.mark.parametrize("only_changes", [False, True], ids=["everything", "changes"])
def test_remote_topics_are_as_recorded_after_every_step(only_changes: bool) -> None:
    steps = RECORDED["steps"]
    replay = Replay(only_changes=only_changes)
    for action, step in zip(ACTIONS, steps[:-1], strict=True):
        action(replay)
        replay.refresh()
        remote = replay.target[step["topic"]]
        observed = step["observed_after_12_s"]
        assert remote.partitions == observed["partitions"], step["action"]
        assert remote.configs == observed["topic_configs"], step["action"]
    assert set(replay.target) == {
        "source_orders",
        "source_payments",
        "source_bytes-topic",
        "source_late-topic",
    }


def test_the_recorded_tasks_are_assigned_round_robin() -> None:
    tasks = [text.split(",") for text in RECORDED["steps"][-1]["tasks"]]
    order = [item for pair in zip(*tasks, strict=True) for item in pair]
    assert [list(task) for task in assign_round_robin(order, 2)] == tasks
