"""Java's own MirrorClient, out of Apache's jar, asked about clusters that we mirror; and ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror import client as ours
from sparkmirror.client import MirrorClient
from sparkmirror.cluster.groups import commit_offsets
from sparkmirror.connect.connectors.checkpoint import CheckpointConnector
from sparkmirror.connect.connectors.explanations import Explanations
from sparkmirror.connect.connectors.heartbeat import HeartbeatConnector
from sparkmirror.connect.connectors.task_groups import checkpoint_tasks, heartbeat_tasks
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.lab.jars import DEFAULT_VERSION, Jars
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from tests.support.clusters import Reachable, UniqueName
from tests.support.connecting import Context, Listener, has_a_plan
from tests.support.java_library import java
from tests.support.mirroring import Mirroring
from tests.support.waiting import wait_until
from tests.support.writing import Writer, numbered


@pytest.fixture(scope="module")
def machine() -> Iterator[Any]:
    """A Java machine with Kafka's jars."""
    with java(Jars().ensure(DEFAULT_VERSION)) as packages:
        yield packages


def _beat(mirroring: Mirroring) -> None:
    """Run the heartbeat connector of a flow until it has beaten."""
    config = mirroring.config("Heartbeat")
    connector, listener = HeartbeatConnector(config["name"], Context()), Listener()
    connector.start(config)
    tasks = tuple(connector.task_configs(1))
    group = heartbeat_tasks(mirroring.worker)(config["name"], listener)
    group.start(
        TaskPlan(connector=config["name"], config=config, tasks=tasks, generation=1), paused=False
    )
    wait_until(lambda: "heartbeats" in listener.topics, "a heartbeat")
    group.stop(60)
    connector.stop()


def _checkpoint(mirroring: Mirroring, group_id: str) -> None:
    """Run the checkpoint connector of a flow until it has said where a group goes on."""
    config = mirroring.config("Checkpoint", groups=group_id)
    connector, listener = CheckpointConnector(config["name"], Context()), Listener()
    explanations = Explanations()
    connector.start(config)
    wait_until(lambda: has_a_plan(connector), "a first look at the clusters")
    tasks = tuple(connector.task_configs(1))
    group = checkpoint_tasks(mirroring.worker, explanations)(config["name"], listener)
    group.start(
        TaskPlan(connector=config["name"], config=config, tasks=tasks, generation=1), paused=False
    )
    wait_until(lambda: bool(explanations.of(config["name"], group_id)), "a checkpoint")
    wait_until(lambda: bool(listener.topics), "it to be written")
    group.stop(60)
    connector.stop()


def test_java_and_we_see_the_same_flow(
    primary: Reachable, backup: Reachable, topic: str, unique_name: UniqueName, machine: Any
) -> None:
    there = Mirroring(name=topic, source=primary, target=backup, topics=topic)
    back = Mirroring(name=f"{topic}.back", source=backup, target=primary, topics=topic)
    there.prepare({topic: 1})
    back.prepare({})
    _beat(back)
    partition, group = TopicPartition(topic, 0), unique_name("group")
    writer = Writer(primary.access)
    writer.write_many(partition, numbered(range(60)), batch=20)
    commit_offsets(writer.router, group, {partition: OffsetAndMetadata(42, "note")})
    writer.close()
    there.copy(heartbeats_replication_enabled="true")
    _checkpoint(there, group)

    properties = machine.java.util.HashMap()
    for key, value in backup.properties.items():
        properties.put(key, value)
    utils = machine.org.apache.kafka.connect.mirror.RemoteClusterUtils
    timeout = machine.java.time.Duration.ofSeconds(120)
    translated = utils.translateOffsets(properties, "A", group, timeout)
    assert {
        (str(entry.getKey()), entry.getValue().offset(), entry.getValue().metadata())
        for entry in translated.entrySet()
    } == {(f"A.{topic}-0", 42, "note")}
    assert ours.translate_offsets(backup.properties, "A", group) == {
        TopicPartition(f"A.{topic}", 0): OffsetAndMetadata(42, "note")
    }
    assert set(utils.heartbeatTopics(properties)) == ours.heartbeat_topics(backup.properties)
    assert set(utils.checkpointTopics(properties)) == ours.checkpoint_topics(backup.properties)
    assert set(utils.upstreamClusters(properties)) == ours.upstream_clusters(backup.properties)
    assert "A" in ours.upstream_clusters(backup.properties)
    for alias in ("A", "B", "nobody"):
        hops = ours.replication_hops(backup.properties, alias)
        assert utils.replicationHops(properties, alias) == hops
    assert ours.replication_hops(backup.properties, "A") == 1
    java_client = machine.org.apache.kafka.connect.mirror.MirrorClient(properties)
    with MirrorClient(backup.properties) as client:
        assert set(java_client.remoteTopics()) == client.remote_topics()
        assert set(java_client.remoteTopics("A")) == client.remote_topics("A")
        assert f"A.{topic}" in client.remote_topics("A")
        matching = client.remote_consumer_offsets_matching(f"{group[:9]}.*", "A")
        assert matching[group] == client.remote_consumer_offsets(group, "A")
        assert client.remote_consumer_offsets(group, "nobody") == {}
    java_client.close()
