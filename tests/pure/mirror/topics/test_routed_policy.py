"""A route renames the remote topics of a policy, and nothing else."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.topics.replication_policy import (
    AwsSampleReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from sparkmirror.mirror.topics.routed_policy import RoutedPolicy, merged_topics, unrouted_policy
from sparkmirror.mirror.topics.topic_selection import TopicSelection
from sparkmirror.model import SourceAndTarget
from tests.support.connect.replication_rules import selection, topic_filter

POLICIES = (
    DefaultReplicationPolicy(),
    DefaultReplicationPolicy(separator="_"),
    IdentityReplicationPolicy(source_alias="A"),
    AwsSampleReplicationPolicy(source_alias="A"),
)
NAMES = st.text("Aab._-", min_size=1, max_size=12) | st.sampled_from(
    ["heartbeats", "A.heartbeats", "A.orders", "B.A.orders", "mm2-offsets.A.internal", "__x"]
)


def strip(topic: str) -> str:
    """The route of a RegexRouter that takes the source's prefix away."""
    return topic.removeprefix("A.")


def stripped(policy: ReplicationPolicy) -> RoutedPolicy:
    return RoutedPolicy(policy, strip)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@given(topic=NAMES)
def test_only_the_names_of_remote_topics_change(policy: ReplicationPolicy, topic: str) -> None:
    routed = stripped(policy)
    for name, method in inspect.getmembers(ReplicationPolicy, inspect.isfunction):
        if name.startswith("_") or name == "format_remote_topic":
            continue
        arguments = (topic,) if len(inspect.signature(method).parameters) > 1 else ()
        assert getattr(routed, name)(*arguments) == getattr(policy, name)(*arguments), name


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@given(topic=NAMES)
def test_a_remote_topic_has_the_routed_name_unless_it_has_heartbeats(
    policy: ReplicationPolicy, topic: str
) -> None:
    remote = policy.format_remote_topic("A", topic)
    expected = remote if policy.is_heartbeats_topic(topic) else strip(remote)
    assert stripped(policy).format_remote_topic("A", topic) == expected


def test_heartbeats_keep_the_name_by_which_clients_find_them() -> None:
    routed = RoutedPolicy(DefaultReplicationPolicy(), lambda _: "everything")
    assert routed.format_remote_topic("A", "heartbeats") == "A.heartbeats"
    assert routed.format_remote_topic("A", "C.heartbeats") == "A.C.heartbeats"
    assert routed.format_remote_topic("A", "orders") == "everything"


def test_topics_with_one_remote_topic_are_named() -> None:
    routed = RoutedPolicy(DefaultReplicationPolicy(), lambda topic: topic[:4])
    assert merged_topics(routed, "A", ["or-1", "pay", "or-2", "or-1"]) == {"A.or": ("or-1", "or-2")}
    assert merged_topics(DefaultReplicationPolicy(), "A", ["a", "a"]) == {}


def test_the_rule_about_the_own_alias_knows_the_policy_below_a_route() -> None:
    for policy in POLICIES[2:]:
        routed = selection(policy=stripped(policy), source_alias_is_cycle=True)
        plain = selection(policy=policy, source_alias_is_cycle=True)
        assert routed.is_cycle("source.x") == plain.is_cycle("source.x")
        assert unrouted_policy(routed.policy) is policy
    assert unrouted_policy(POLICIES[0]) is POLICIES[0]


def flow(source: str, target: str) -> TopicSelection:
    """A flow that takes the prefix of its source away."""
    return TopicSelection(
        flow=SourceAndTarget(source, target),
        policy=RoutedPolicy(DefaultReplicationPolicy(), lambda t: t.removeprefix(f"{source}.")),
        topic_filter=topic_filter(topics="orders"),
    )


def test_names_without_a_prefix_show_no_cycle() -> None:
    """Two such flows copy a topic back and forth; `config validate` warns about them."""
    there, back = flow("A", "B"), flow("B", "A")
    name = there.policy.format_remote_topic("A", "orders")
    assert not back.is_cycle(name)
    assert back.should_replicate_topic(name)
    assert back.policy.format_remote_topic("B", name) == "orders"
