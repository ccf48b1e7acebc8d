"""The topology in topic names, as MirrorMaker 2's client library reads it."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.mirror.topics.mirror_client_topics import (
    checkpoint_topics,
    count_hops,
    heartbeat_topics,
    remote_topics,
    replication_hops,
    upstream_clusters,
)
from sparkmirror.mirror.topics.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from tests.support.golden import golden_json

RECORDED: dict[str, Any] = golden_json("vectors/mirror-client.json")
MULTI_HOP = [
    "heartbeats",
    "source1.heartbeats",
    "source1.source2.heartbeats",
    "source3.heartbeats",
]


def policy_named(name: str) -> ReplicationPolicy:
    return (
        IdentityReplicationPolicy(source_alias="source1")
        if name == "Identity"
        else DefaultReplicationPolicy()
    )


@pytest.mark.parametrize("case", range(len(RECORDED["cases"])))
def test_topic_lists_are_read_as_recorded(case: int) -> None:
    recorded = RECORDED["cases"][case]
    policy, topics = policy_named(recorded["policy"]), recorded["topics"]
    hops = recorded["replicationHops"]
    assert {
        "heartbeatTopics": sorted(heartbeat_topics(policy, topics)),
        "checkpointTopics": sorted(checkpoint_topics(policy, topics)),
        "upstreamClusters": sorted(upstream_clusters(policy, topics)),
        "remoteTopics": sorted(remote_topics(policy, topics)),
        "remoteTopics(source1)": sorted(remote_topics(policy, topics, "source1")),
        "replicationHops": {alias: replication_hops(policy, topics, alias) for alias in hops},
    } == {name: value for name, value in recorded.items() if name not in ("policy", "topics")}


def test_count_hops_for_topic() -> None:
    rows = RECORDED["count_hops_topic_alias_result"]
    assert len(rows) == 12
    for topic, alias, hops in rows:
        assert count_hops(DefaultReplicationPolicy(), topic, alias) == hops, topic


def test_counting_hops_ends_at_a_topic_that_is_its_own_upstream_topic() -> None:
    identity = IdentityReplicationPolicy(source_alias="source1")
    assert count_hops(identity, "topic", "source1") == 1
    assert count_hops(identity, "topic", "source2") == -1


def test_heartbeat_topics() -> None:
    topics = ["topic1", "topic2", "heartbeats", "source1.heartbeats", "source2.source1.heartbeats"]
    assert heartbeat_topics(DefaultReplicationPolicy(), topics) == set(topics[2:])


def test_checkpoints_topics() -> None:
    topics = ["topic1", "checkpoints.internal", "source1.checkpoints.internal"]
    assert checkpoint_topics(DefaultReplicationPolicy(), topics) == {"source1.checkpoints.internal"}


def test_replication_hops() -> None:
    hops = [
        replication_hops(DefaultReplicationPolicy(), MULTI_HOP, f"source{n}") for n in range(1, 5)
    ]
    assert hops == [1, 2, 1, -1]


def test_upstream_clusters() -> None:
    topics = [*MULTI_HOP, "topic1", "source1.source2.source4.source5.heartbeats"]
    found = upstream_clusters(DefaultReplicationPolicy(), topics)
    assert found == {"source1", "source2", "source3", "source4", "source5"}


def test_identity_replication_upstream_clusters() -> None:
    topics = [*MULTI_HOP, "topic1", "source1.source2.source4.source5.heartbeats"]
    found = upstream_clusters(IdentityReplicationPolicy(source_alias="source"), topics)
    assert found == {"source1", "source2", "source3", "source4", "source5"}


def test_remote_topics() -> None:
    topics = ["topic1", "topic2", "source1.topic4", "source1.source2.topic5", "source3.topic6"]
    assert remote_topics(DefaultReplicationPolicy(), topics) == set(topics[2:])


def test_identity_replication_remote_topics() -> None:
    topics = ["topic1", "source1.topic4", "heartbeats", "backup.heartbeats"]
    found = remote_topics(IdentityReplicationPolicy(source_alias="source"), topics)
    assert found == {"topic1", "source1.topic4", "backup.heartbeats"}


def test_remote_topics_separator() -> None:
    topics = ["topic1", "source1__topic4", "source1__source2__topic5", "source1.topic6"]
    assert remote_topics(DefaultReplicationPolicy(separator="__"), topics) == set(topics[1:3])
