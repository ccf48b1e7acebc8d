"""The plan creates remote topics and adds partitions, and removes neither."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.topics.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
)
from sparkmirror.mirror.topics.topic_plan import (
    NewRemotePartitions,
    NewRemoteTopic,
    TopicPlan,
    plan_topics,
)
from tests.support.connect.replication_rules import all_partitions, selection

FLOW = selection()


def plan(source: dict[str, int], target: dict[str, int]) -> TopicPlan:
    return plan_topics(
        FLOW, source=all_partitions(source), target=all_partitions(target), replication_factor=2
    )


def test_a_missing_remote_topic_is_created_with_the_partition_count_of_its_source() -> None:
    assert plan({"b": 3, "a": 1}, {}) == TopicPlan(
        new_topics=(
            NewRemoteTopic(source_topic="a", name="source.a", partitions=1, replication_factor=2),
            NewRemoteTopic(source_topic="b", name="source.b", partitions=3, replication_factor=2),
        )
    )


def test_a_remote_topic_with_fewer_partitions_gets_more() -> None:
    assert plan({"a": 5}, {"source.a": 3}) == TopicPlan(
        new_partitions=(NewRemotePartitions(name="source.a", partitions=5),)
    )


@pytest.mark.parametrize("partitions", [3, 8])
def test_a_remote_topic_with_enough_partitions_is_not_changed(partitions: int) -> None:
    assert not plan({"a": 3}, {"source.a": partitions})


def test_a_topic_of_the_target_alone_is_not_changed() -> None:
    assert not plan({}, {"source.a": 3})


def test_identity_creates_the_topic_under_its_own_name() -> None:
    asked = selection(policy=IdentityReplicationPolicy(source_alias="source"))
    found = plan_topics(asked, source=all_partitions({"a": 1}), target=(), replication_factor=-1)
    assert [(new.name, new.replication_factor) for new in found.new_topics] == [("a", -1)]


def test_new_topics_get_the_configs_of_their_source() -> None:
    found = plan({"a": 1, "b": 1}, {"source.b": 1}).with_configs({"a": {"retention.ms": "-1"}})
    assert [new.configs for new in found.new_topics] == [{"retention.ms": "-1"}]


counts = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 4), max_size=5)


@settings(max_examples=30)
@given(source=counts, remote=counts)
def test_after_the_plan_every_partition_has_a_copy_and_nothing_is_left_to_do(
    source: dict[str, int], remote: dict[str, int]
) -> None:
    policy = DefaultReplicationPolicy()
    target = {policy.format_remote_topic("source", topic): n for topic, n in remote.items()}
    found = plan(source, target)
    carried_out = target | {new.name: new.partitions for new in found.new_topics}
    carried_out |= {grown.name: grown.partitions for grown in found.new_partitions}
    assert all(carried_out[name] >= count for name, count in target.items())
    assert all(carried_out[f"source.{topic}"] >= count for topic, count in source.items())
    assert not plan(source, carried_out)
