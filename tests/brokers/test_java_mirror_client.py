"""Java's MirrorClient and ours give the same answers about clusters that we mirror."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror import client as ours
from sparkmirror.client import MirrorClient
from sparkmirror.cluster.groups import alter_consumer_group_offsets
from sparkmirror.connect.connectors.checkpoint.checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.connectors.checkpoint.group_report import GroupReports
from sparkmirror.connect.connectors.heartbeat.heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.worker.connector_wiring import checkpoint_task_groups, heartbeat_task_groups
from tests.support.connect.connector_context import (
    RecordingContext,
    RecordingListener,
    can_plan_tasks,
)
from tests.support.connect.connector_flow import ConnectorFlow
from tests.support.connect.task_plans import plan_of_all_tasks
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.clusters import SharedCluster, UniqueName
from tests.support.lab.java_library import running_jvm
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """The packages of a JVM with Kafka's jars."""
    with running_jvm(JarCache().ensure(DEFAULT_VERSION)) as packages:
        yield packages


def _emit_heartbeat(mirroring: ConnectorFlow) -> None:
    """Run the heartbeat connector of a flow until it has written a heartbeat."""
    config = mirroring.connector_config("Heartbeat")
    connector, listener = (
        MirrorHeartbeatConnector(config["name"], RecordingContext()),
        RecordingListener(),
    )
    connector.start(config)
    tasks = tuple(connector.task_configs(1))
    group = heartbeat_task_groups(mirroring.worker)(config["name"], listener)
    group.start(
        plan_of_all_tasks(config, tasks),
        paused=False,
    )
    wait_until(lambda: "heartbeats" in listener.topics, "a heartbeat")
    group.stop(60)
    connector.stop()


def _emit_checkpoint(mirroring: ConnectorFlow, group_id: str) -> None:
    """Run the checkpoint connector of a flow until it has written a checkpoint of the group."""
    config = mirroring.connector_config("Checkpoint", groups=group_id)
    connector, listener = (
        MirrorCheckpointConnector(config["name"], RecordingContext()),
        RecordingListener(),
    )
    explanations = GroupReports()
    connector.start(config)
    wait_until(lambda: can_plan_tasks(connector), "the connector to read the clusters")
    tasks = tuple(connector.task_configs(1))
    group = checkpoint_task_groups(mirroring.worker, explanations)(config["name"], listener)
    group.start(
        plan_of_all_tasks(config, tasks),
        paused=False,
    )
    wait_until(lambda: bool(explanations.reports_for(config["name"], group_id)), "a checkpoint")
    wait_until(lambda: bool(listener.topics), "the checkpoint to be written")
    group.stop(60)
    connector.stop()


def test_java_and_our_client_give_the_same_answers(
    primary: SharedCluster, backup: SharedCluster, topic: str, unique_name: UniqueName, java: Any
) -> None:
    forward = ConnectorFlow(name=topic, source=primary, target=backup, topics=topic)
    backward = ConnectorFlow(name=f"{topic}.backward", source=backup, target=primary, topics=topic)
    forward.create_topics({topic: 1})
    backward.create_topics({})
    _emit_heartbeat(backward)
    partition, group = TopicPartition(topic, 0), unique_name("group")
    writer = BatchWriter(primary.access)
    writer.write_batches(partition, numbered_records(range(60)), batch=20)
    alter_consumer_group_offsets(writer.router, group, {partition: OffsetAndMetadata(42, "note")})
    writer.close()
    forward.copy_to_end(heartbeats_replication_enabled="true")
    _emit_checkpoint(forward, group)

    properties = java.java.util.HashMap()
    for key, value in backup.properties.items():
        properties.put(key, value)
    utils = java.org.apache.kafka.connect.mirror.RemoteClusterUtils
    timeout = java.java.time.Duration.ofSeconds(120)
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
    for alias in ("A", "B", "unknown"):
        hops = ours.replication_hops(backup.properties, alias)
        assert utils.replicationHops(properties, alias) == hops
    assert ours.replication_hops(backup.properties, "A") == 1
    java_client = java.org.apache.kafka.connect.mirror.MirrorClient(properties)
    with MirrorClient(backup.properties) as client:
        assert set(java_client.remoteTopics()) == client.remote_topics()
        assert set(java_client.remoteTopics("A")) == client.remote_topics("A")
        assert f"A.{topic}" in client.remote_topics("A")
        matching = client.remote_consumer_offsets_matching(f"{group[:9]}.*", "A")
        assert matching[group] == client.remote_consumer_offsets(group, "A")
        assert client.remote_consumer_offsets(group, "unknown") == {}
    java_client.close()
