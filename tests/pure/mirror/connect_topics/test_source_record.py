"""The source records of checkpoints and heartbeats."""

from __future__ import annotations

from sparkmirror.mirror.connect_topics.connect_offsets import offset_key
from sparkmirror.mirror.connect_topics.source_record import checkpoint_record, heartbeat_record
from sparkmirror.mirror.offsets.records import Checkpoint, Heartbeat
from sparkmirror.model import TopicPartition


def test_poll_creates_records() -> None:
    """Upstream's MirrorHeartbeatTaskTest."""
    beat = Heartbeat(source="testSource", target="testTarget", timestamp_ms=1700)
    outgoing = heartbeat_record("heartbeats", beat)
    assert (outgoing.topic, outgoing.partition, outgoing.timestamp_ms) == ("heartbeats", 0, 1700)
    assert outgoing.source_partition == {
        "sourceClusterAlias": "testSource",
        "targetClusterAlias": "testTarget",
    }
    assert outgoing.source_offset == {"offset": 0}
    assert Heartbeat.decode(outgoing.record) == beat


def test_a_checkpoint_record_has_its_timestamp_and_remote_topic() -> None:
    made = Checkpoint(
        group="g", partition=TopicPartition("A.t", 3), upstream=10, downstream=20, metadata="m"
    )
    outgoing = checkpoint_record("A.checkpoints.internal", made, 42)
    assert (outgoing.topic, outgoing.partition) == ("A.checkpoints.internal", 0)
    assert outgoing.timestamp_ms == 42
    assert offset_key("c", outgoing.source_partition) == (
        b'["c",{"partition":3,"topic":"A.t","group":"g"}]'
    )
    assert Checkpoint.decode(outgoing.record) == made
