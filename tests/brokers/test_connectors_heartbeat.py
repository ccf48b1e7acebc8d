"""Heartbeats on a real cluster: the connector, its task as a thread, and their records."""

from __future__ import annotations

import time

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.connect.connectors.heartbeat.heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.mirror.offsets.records import Heartbeat, RecordBytes
from sparkmirror.worker.connector_wiring import heartbeat_task_groups
from tests.support.connect.connector_context import RecordingContext, RecordingListener
from tests.support.connect.connector_flow import ConnectorFlow
from tests.support.connect.task_plans import plan_of_all_tasks
from tests.support.kafka.clusters import SharedCluster, UniqueName
from tests.support.waiting import wait_until

CLOCK_MS = 100
"""How far the wall clock may have been set back during the test."""


def _read_heartbeats(cluster: SharedCluster, source: str) -> list[Heartbeat]:
    records = read_topic(cluster.access, "heartbeats")
    heartbeats = [(one, Heartbeat.decode(RecordBytes(one.key, one.value))) for one in records]
    for record, heartbeat in heartbeats:
        assert record.timestamp_ms == heartbeat.timestamp_ms
    return [heartbeat for _, heartbeat in heartbeats if heartbeat.source == source]


def test_heartbeats_are_written_while_the_task_runs(
    primary: SharedCluster, backup: SharedCluster, unique_name: UniqueName
) -> None:
    name = unique_name("beats")
    mirroring = ConnectorFlow(name=name, source=primary, target=backup, topics=".*")
    mirroring.create_topics({})
    config = mirroring.connector_config(
        "Heartbeat", enabled="false", emit_heartbeats_interval_seconds="1"
    )
    config["source.cluster.alias"] = name
    connector = MirrorHeartbeatConnector(config["name"], RecordingContext())
    connector.start(config)
    tasks = connector.task_configs(3)
    assert tasks == (config,), "one task, with the connector's own config"
    listener = RecordingListener()
    group = heartbeat_task_groups(mirroring.worker)(config["name"], listener)
    plan = plan_of_all_tasks(config, tasks)
    began_ms = time.time_ns() // 1_000_000
    group.start(plan, paused=True)
    wait_until(lambda: listener.last_report() == "paused", "the task to hold still")
    group.resume()
    wait_until(lambda: len(_read_heartbeats(backup, name)) >= 2, "two heartbeats")
    assert listener.last_report() == "running"
    assert listener.topics == {"heartbeats"}
    group.stop(60)
    connector.stop()
    assert listener.last_report() == "stopped"
    heartbeats = _read_heartbeats(backup, name)
    assert {heartbeat.target for heartbeat in heartbeats} == {"B"}
    for number, heartbeat in enumerate(heartbeats, start=1):
        # A late heartbeat does not delay the next, so the test counts from the start.
        assert heartbeat.timestamp_ms >= began_ms + number * 1000 - CLOCK_MS
    with Admin(backup.access) as admin:
        assert len(admin.describe_topics(["heartbeats"])["heartbeats"].partitions) == 1
    stored = [
        StoredOffset.decode(RecordBytes(one.key, one.value))
        for one in read_topic(backup.access, f"offsets.{name}")
    ]
    partition = {"sourceClusterAlias": name, "targetClusterAlias": "B"}
    assert [(one.partition, one.offset) for one in stored] == [(partition, {"offset": 0})]


def test_a_connector_with_disabled_heartbeats_has_no_task(
    primary: SharedCluster, backup: SharedCluster
) -> None:
    mirroring = ConnectorFlow(name="none", source=primary, target=backup, topics=".*")
    connector = MirrorHeartbeatConnector("c", RecordingContext())
    connector.start(mirroring.connector_config("Heartbeat", emit_heartbeats_enabled="false"))
    try:
        assert connector.task_configs(1) == ()
    finally:
        connector.stop()
