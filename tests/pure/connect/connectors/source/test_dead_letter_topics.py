"""Which topic may hold dead letters, and its creation."""

from __future__ import annotations

import pytest

from sparkmirror.connect.connectors.source.dead_letter_topics import (
    RETRY_INTERVAL_S,
    DeadLetterTopicCreation,
    require_dead_letter_topic,
    transformation_faults,
)
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ConfigError, TooFewBrokers
from sparkmirror.transforms.configuration.error_settings import DeadLetterTopic
from tests.support.kafka.in_memory_cluster import InMemoryCluster

TOPIC = "sparkmirror.errors.deadletterqueue.topic.name"
CONFIG = {
    "name": "c",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "topics": "orders.*",
    "errors.tolerance": "all",
}
IDENTITY = {"replication.policy.class": "IdentityReplicationPolicy"}
STRIP = {
    "transforms": "strip",
    "transforms.strip.type": "RegexRouter",
    "transforms.strip.regex": r"A\.(.*)",
    "transforms.strip.replacement": "$1",
}
LETTERS = DeadLetterTopic(name="failed", replication_factor=3, has_context_headers=False)


@pytest.mark.parametrize(
    ("topic", "more", "fault"),
    [
        ("failed", {}, ""),
        ("failed.orders", {}, ""),
        ("failed", IDENTITY, ""),
        ("orders.failed", {}, "is mirrored if A has a topic of this name"),
        ("orders.failed", {"topics.exclude": ".*failed"}, ""),
        ("failed", {"topics": ".*"}, "is mirrored if A has a topic of this name"),
        ("orders", IDENTITY, "is mirrored if A has"),
        ("A.failed", {}, "is the name of a remote topic from A"),
        ("A.failed", STRIP, "is the name of a remote topic from A"),
        ("__consumer_offsets", {}, "is an internal topic"),
        ("mm2-offsets.A.internal", {}, "is an internal topic"),
        ("A.checkpoints.internal", {}, "is an internal topic"),
        ("heartbeats", {}, "is an internal topic"),
    ],
)
def test_topics_that_the_flow_copies_or_writes_to_are_refused(
    topic: str, more: dict[str, str], fault: str
) -> None:
    props = {**CONFIG, **more, TOPIC: topic}
    found = [(one.key, one.message) for one in transformation_faults(props)]
    assert [key for key, _ in found] == [TOPIC] * bool(fault)
    assert all(fault in message for _, message in found)
    config = MirrorSourceConfig.parse(props)
    if fault:
        with pytest.raises(ConfigError, match=fault):
            require_dead_letter_topic(config, {})
    else:
        require_dead_letter_topic(config, {"x": "y"})


def test_a_topic_to_which_a_route_sends_records_is_refused() -> None:
    config = MirrorSourceConfig.parse({**CONFIG, TOPIC: "failed"})
    with pytest.raises(ConfigError, match="failed is the remote topic of orders"):
        require_dead_letter_topic(config, {"orders": "failed"})


def test_a_policy_of_the_operators_own_is_not_loaded_by_a_validation() -> None:
    props = {**CONFIG, TOPIC: "A.failed", "replication.policy.class": "no_such_module:Policy"}
    assert not transformation_faults(props)


def test_without_a_topic_there_is_nothing_to_refuse() -> None:
    assert not transformation_faults(CONFIG)
    require_dead_letter_topic(MirrorSourceConfig.parse(CONFIG), {"orders": ""})


def test_a_missing_topic_is_created_with_the_replication_factor() -> None:
    target, now = InMemoryCluster("B"), [0.0]
    creation = DeadLetterTopicCreation(target, LETTERS, clock=lambda: now[0])
    creation.ensure()
    (created,) = target.created
    assert (created.name, created.partitions, created.replication_factor) == ("failed", 1, 3)
    now[0] += RETRY_INTERVAL_S
    creation.ensure()
    assert len(target.created) == 1
    assert not creation.problem


def test_a_topic_that_cannot_be_created_is_a_problem_until_it_exists() -> None:
    target, now = InMemoryCluster("B"), [0.0]
    target.creation_errors["failed"] = TooFewBrokers("B", "3 replicas need 3 brokers")
    creation = DeadLetterTopicCreation(target, LETTERS, clock=lambda: now[0])
    creation.ensure()
    assert "topic failed for dead letters cannot be created" in creation.problem
    assert "3 replicas need 3 brokers" in creation.problem
    target.creation_errors.clear()
    creation.ensure()
    assert creation.problem, "it is tried again later"
    now[0] += RETRY_INTERVAL_S
    creation.ensure()
    assert not creation.problem
    assert [one.name for one in target.created] == ["failed"]
