"""Policies format and parse remote topic names as MirrorMaker 2's do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import ConfigError
from sparkmirror.mirror.topics.replication_policy import (
    AwsSampleReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    PolicyFactory,
    ReplicationPolicy,
    ReplicationPolicyConfig,
    create_policy,
    is_internal_with_any_separator,
)
from tests.support.connect.replication_rules import no_custom_policy, policy_of
from tests.support.golden import golden_json

RECORDED: list[dict[str, Any]] = golden_json("vectors/replication-policy.json")["policies"]
AWS_SAMPLE = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"

aliases = st.text("abAB-_", min_size=1, max_size=6)
names = st.text("abt.-_", min_size=1, max_size=12)


def answers(asked: ReplicationPolicy, topic: str) -> list[object]:
    return [
        topic,
        asked.format_remote_topic("A", topic),
        asked.topic_source(topic),
        asked.upstream_topic(topic),
        asked.original_topic(topic),
        asked.is_internal_topic(topic),
        asked.is_mm2_internal_topic(topic),
        asked.is_checkpoints_topic(topic),
        asked.is_heartbeats_topic(topic),
    ]


@pytest.mark.parametrize("case", range(len(RECORDED)))
def test_every_policy_gives_the_recorded_answers(case: int) -> None:
    recorded = RECORDED[case]
    asked = policy_of(recorded["policy"], recorded["config"])
    assert asked.heartbeats_topic() == recorded["heartbeatsTopic"]
    for alias, topics in recorded["aliases"].items():
        assert asked.offset_syncs_topic(alias) == topics["offsetSyncsTopic"]
        assert asked.checkpoints_topic(alias) == topics["checkpointsTopic"]
    assert len(recorded["topics"]) == 59
    assert [answers(asked, row[0]) for row in recorded["topics"]] == recorded["topics"]


def test_internal_topic() -> None:
    asked = DefaultReplicationPolicy()
    for topic in ("__consumer_offsets", ".hiddentopic", "mm2-offsets.CLUSTER.internal"):
        assert asked.is_internal_topic(topic)
    for topic in ("mm2-offsets_CLUSTER_internal", "mm2-offsets-CLUSTER-internal"):
        assert not asked.is_internal_topic(topic)


@pytest.mark.parametrize(("enabled", "separator"), [("true", "__"), ("false", ".")])
def test_offset_syncs_topic_should_be_effected_by_internal_topic_separator_enabled(
    enabled: str, separator: str
) -> None:
    asked = policy_of("DefaultReplicationPolicy", underscores(enabled))
    expected = separator.join(("mm2-offset-syncs", "CLUSTER", "internal"))
    assert asked.offset_syncs_topic("CLUSTER") == expected


@pytest.mark.parametrize(("enabled", "separator"), [("true", "__"), ("false", ".")])
def test_checkpoints_topic_should_be_effected_by_internal_topic_separator_enabled(
    enabled: str, separator: str
) -> None:
    asked = policy_of("DefaultReplicationPolicy", underscores(enabled))
    expected = separator.join(("CLUSTER", "checkpoints", "internal"))
    assert asked.checkpoints_topic("CLUSTER") == expected


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_heartbeats_topic_should_not_be_effected_by_internal_topic_separator_config(
    enabled: str,
) -> None:
    assert policy_of("DefaultReplicationPolicy", underscores(enabled)).heartbeats_topic() == (
        "heartbeats"
    )


def underscores(enabled: str) -> dict[str, str]:
    return {
        "replication.policy.separator": "__",
        "replication.policy.internal.topic.separator.enabled": enabled,
    }


def test_replication_policy() -> None:
    asked = policy_of("DefaultReplicationPolicy", {"replication.policy.separator": "__"})
    assert asked.format_remote_topic("source1", "topic1") == "source1__topic1"


def test_is_heartbeat_topic() -> None:
    asked = DefaultReplicationPolicy()
    for topic in ("heartbeats", "source1.heartbeats", "source2.source1.heartbeats"):
        assert asked.is_heartbeats_topic(topic)
    for topic in ("heartbeats!", "!heartbeats", "source1heartbeats", "source1-heartbeats"):
        assert not asked.is_heartbeats_topic(topic)


def test_is_checkpoint_topic() -> None:
    asked = DefaultReplicationPolicy()
    assert asked.is_checkpoints_topic("source1.checkpoints.internal")
    for topic in (
        "checkpoints.internal",
        "checkpoints-internal",
        "checkpoints.internal!",
        "!checkpoints.internal",
        "source1checkpointsinternal",
    ):
        assert not asked.is_checkpoints_topic(topic)


def test_identity_replication_topic_source() -> None:
    asked = IdentityReplicationPolicy(source_alias="primary")
    assert asked.format_remote_topic("primary", "topic1") == "topic1"
    assert asked.topic_source("topic1") == "primary"
    assert asked.format_remote_topic("primary", "heartbeats") == "primary.heartbeats"
    assert asked.topic_source("primary.heartbeats") == "primary"
    assert asked.topic_source("heartbeats") is None


def test_the_aws_sample_keeps_all_names_and_has_no_upstream_topic() -> None:
    asked = policy_of(AWS_SAMPLE, {"source.cluster.alias": "msksource"})
    for topic in ("orders", "heartbeats", "msksource.heartbeats", "a.b"):
        assert asked.format_remote_topic("other", topic) == topic
        assert asked.topic_source(topic) == "msksource"
        assert asked.upstream_topic(topic) is None
        assert asked.original_topic(topic) == topic
    assert asked.checkpoints_topic("msksource") == "msksource.checkpoints.internal"
    assert asked.is_internal_topic("msksource.checkpoints.internal")


def test_the_aws_sample_needs_an_alias() -> None:
    with pytest.raises(ConfigError, match=r"source\.cluster\.alias"):
        create_policy(AWS_SAMPLE, ReplicationPolicyConfig(), no_custom_policy)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org.apache.kafka.connect.mirror.DefaultReplicationPolicy", DefaultReplicationPolicy),
        ("org.apache.kafka.connect.mirror.IdentityReplicationPolicy", IdentityReplicationPolicy),
        ("IdentityReplicationPolicy", IdentityReplicationPolicy),
        ("CustomMM2ReplicationPolicy", AwsSampleReplicationPolicy),
    ],
    ids=["default", "identity", "simple", "aws"],
)
def test_policies_are_found_by_their_java_names(name: str, expected: type) -> None:
    assert (
        type(create_policy(name, ReplicationPolicyConfig(source_alias="A"), no_custom_policy))
        is expected
    )


def test_an_unknown_class_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"com\.example\.Nope.*IdentityReplicationPolicy"):
        create_policy("com.example.Nope", ReplicationPolicyConfig(), no_custom_policy)


class SuffixPolicy(ReplicationPolicy):
    """A custom policy: `orders` of A becomes `orders@A`."""

    def __init__(self, config: ReplicationPolicyConfig) -> None:
        self.sign = config.originals["sign"]

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}{self.sign}{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        return topic.rpartition(self.sign)[2] if self.sign in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition(self.sign)[0] if self.sign in topic else None


def test_a_custom_policy_is_built_by_the_resolver() -> None:
    asked_for: list[str] = []

    def resolve(name: str) -> PolicyFactory:
        asked_for.append(name)
        return SuffixPolicy

    own = create_policy(
        "mine.naming:SuffixPolicy", ReplicationPolicyConfig(originals={"sign": "@"}), resolve
    )
    assert asked_for == ["mine.naming:SuffixPolicy"]
    assert own.format_remote_topic("A", "orders") == "orders@A"
    assert own.original_topic("orders@A@B") == "orders"
    assert own.is_heartbeats_topic("heartbeats@A")
    assert own.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    assert own.is_internal_topic(own.offset_syncs_topic("B"))
    assert own.is_internal_topic(own.checkpoints_topic("A"))


class CyclicPolicy(SuffixPolicy):
    def upstream_topic(self, topic: str) -> str | None:
        return {"a": "b", "b": "a"}.get(topic)


def test_a_cyclic_policy_does_not_hang() -> None:
    circling = CyclicPolicy(ReplicationPolicyConfig(originals={"sign": "@"}))
    assert circling.original_topic("a") == "b"


def test_connect_topics_are_internal_under_every_separator() -> None:
    asked = DefaultReplicationPolicy(separator="_", internal_separator="_")
    dotted = [f"mm2-{kind}.A.internal" for kind in ("configs", "offsets", "status")]
    assert not any(asked.is_internal_topic(topic) for topic in dotted)
    for topic in [*dotted, asked.offset_syncs_topic("A"), asked.checkpoints_topic("A")]:
        assert is_internal_with_any_separator(asked, topic)
    assert not is_internal_with_any_separator(asked, "orders")


@settings(max_examples=30)
@given(alias=aliases, hops=st.lists(aliases, max_size=3), topic=st.text("abt", min_size=1))
def test_a_remote_topic_name_gives_its_source_and_upstream_topic(
    alias: str, hops: Sequence[str], topic: str
) -> None:
    asked = DefaultReplicationPolicy()
    name = topic
    for hop in hops:
        name = asked.format_remote_topic(hop, name)
    remote = asked.format_remote_topic(alias, name)
    assert asked.topic_source(remote) == alias
    assert asked.upstream_topic(remote) == name
    assert asked.original_topic(remote) == topic


@settings(max_examples=30)
@given(alias=aliases, topic=names)
def test_a_name_with_a_source_is_formatted_back_to_itself(alias: str, topic: str) -> None:
    for asked in (
        DefaultReplicationPolicy(),
        DefaultReplicationPolicy(separator="_"),
        DefaultReplicationPolicy(separator="--"),
    ):
        source, upstream = asked.topic_source(topic), asked.upstream_topic(topic)
        assert (source is None) == (upstream is None)
        if source is not None and upstream is not None:
            assert asked.format_remote_topic(source, upstream) == topic
