"""Following and appending survive brokers that stop, restart and compact their logs."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.errors import ClusterTimeout, ClusterUnavailable
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from tests.support.connect.log_collector import LogCollector, collecting_log, create_compacted_topic
from tests.support.waiting import wait_until

FAST_COMPACTION = {
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "100",
    "max.compaction.lag.ms": "200",
}


def test_following_and_appending_survive_broker_failures(
    three_broker_cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    create_compacted_topic(three_broker_cluster.access(), topic, partitions=6, replicas=3)
    written: dict[bytes | None, bytes | None] = {}
    with collecting_log(three_broker_cluster.access(), topic) as collector:

        def write(phase: str) -> None:
            for n in range(12):
                record = RecordBytes(b"key %d" % n, f"{phase} {n}".encode())
                append_until_acknowledged(collector, record)
                written[record.key] = record.value
            collector.log.read_to_end()
            assert collector.latest_values == written

        write("before")
        three_broker_cluster.kill_broker(1)
        write("one killed")
        three_broker_cluster.start_broker(1)
        three_broker_cluster.stop_broker(2)
        write("another stopped")
        three_broker_cluster.start_broker(2)
        write("after")
        offsets = [(entry.partition, entry.offset) for entry in collector.entries]
        assert len(offsets) == len(set(offsets)), "no record was consumed twice"
    assert f"Topic {topic} cannot be read, trying again" in caplog.text
    assert f"Topic {topic} can be read again, after" in caplog.text


def append_until_acknowledged(collector: LogCollector, record: RecordBytes) -> None:
    """Append again after a retriable error, as the writers of statuses do.

    On a busy computer the controllers need more than the thirty seconds of one append to notice
    that a broker is dead. Until then its connections are refused. The records have keys, so a
    second one changes nothing.
    """
    wait_until(lambda: _is_acknowledged(collector, record), "the record to be appended", 180)


def _is_acknowledged(collector: LogCollector, record: RecordBytes) -> bool:
    try:
        collector.log.append([record])
    except (ClusterTimeout, ClusterUnavailable):
        return False
    return True


def test_a_compacted_topic_gives_the_same_snapshot(
    three_broker_cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_compacted_topic(
        three_broker_cluster.access(), topic, replicas=3, configs=FAST_COMPACTION
    )
    writer = LogCollector(three_broker_cluster.access(), topic)
    store = KafkaConfigBackingStore(writer.log)
    store.start(lambda change: None)
    for turn in range(3):
        store.put_connector_config("whole", {"turn": str(turn)})
        store.put_task_configs("whole", [{"task": "0"}])
        store.put_connector_config("gone", {"turn": str(turn)})
    store.put_task_configs("whole", [{"task": "0"}, {"task": "1"}])
    store.put_target_state("whole", TargetState.PAUSED)
    store.remove_connector_config("gone")
    wait_until(lambda: is_cleaned(three_broker_cluster, topic), "the brokers to compact", 120)
    store.stop()
    caplog.set_level(logging.INFO)
    again = KafkaConfigBackingStore(LogCollector(three_broker_cluster.access(), topic).log)
    again.start(lambda change: None)
    state = again.snapshot()
    again.stop()
    assert state.connectors() == ("whole",)
    assert state.connector_config("whole") == {"turn": "2"}
    assert state.task_configs("whole") == ({"task": "0"}, {"task": "1"})
    assert state.target_state("whole") is TargetState.PAUSED
    assert "offsets have no record, because they were compacted" in caplog.text


def is_cleaned(cluster: Cluster, topic: str) -> bool:
    """Roll the active segment, so that brokers can compact it; return whether they have."""
    with collecting_log(cluster.access(), topic) as reader:
        reader.log.append([RecordBytes(b"logger-cluster-active", b'{"level":"INFO"}')])
        seen = [entry.record.key for entry in reader.entries]
    connectors = [key for key in seen if key == b"connector-whole"]
    return len(connectors) == 1
