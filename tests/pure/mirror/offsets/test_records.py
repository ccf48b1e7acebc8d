"""Offset syncs, checkpoints and heartbeats have Java's bytes and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import RecordError
from sparkmirror.mirror.offsets.records import Checkpoint, Heartbeat, OffsetSync, RecordBytes
from sparkmirror.model import TopicPartition
from tests.support.golden import from_base64, golden_json, golden_records

VECTORS = golden_json("vectors/records.json")
DECODERS: dict[str, Callable[[RecordBytes], OffsetSync | Checkpoint | Heartbeat]] = {
    "offset_sync": OffsetSync.decode,
    "checkpoint": Checkpoint.decode,
    "heartbeat": Heartbeat.decode,
}

texts = st.text(max_size=20)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
partitions = st.builds(TopicPartition, texts, int32s)


def given_bytes(vector: dict[str, Any]) -> RecordBytes:
    return RecordBytes(from_base64(vector["key"]), from_base64(vector["value"]))


def offset_sync(vector: dict[str, Any]) -> OffsetSync:
    return OffsetSync(
        partition=TopicPartition(vector["topic"], vector["partition"]),
        upstream=vector["upstream"],
        downstream=vector["downstream"],
    )


def checkpoint(vector: dict[str, Any]) -> Checkpoint:
    return Checkpoint(
        group=vector["group"],
        partition=TopicPartition(vector["topic"], vector["partition"]),
        upstream=vector["upstream"],
        downstream=vector["downstream"],
        metadata=vector["metadata"],
    )


def heartbeat(vector: dict[str, Any]) -> Heartbeat:
    return Heartbeat(
        source=vector["source"], target=vector["target"], timestamp_ms=vector["timestamp"]
    )


MAKERS: dict[str, Callable[[dict[str, Any]], OffsetSync | Checkpoint | Heartbeat]] = {
    "offset_sync": offset_sync,
    "checkpoint": checkpoint,
    "heartbeat": heartbeat,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_bytes_and_text_are_javas(kind: str) -> None:
    for vector in VECTORS[kind]:
        value = MAKERS[kind](vector)
        assert value.encode() == given_bytes(vector)
        assert DECODERS[kind](given_bytes(vector)) == value
        assert str(value) == vector["text"]


def expected_message(message: str) -> str:
    """Return our message for Java's: it names what is missing instead of a Java class."""
    if "BufferUnderflowException" in message:
        return message.partition(": ")[0] + r": \d bytes needed, only \d available"
    if "is null" in message:
        return "The record has no (key|value)"
    return message


@pytest.mark.parametrize(
    "vector", VECTORS["decode"], ids=lambda v: f"{v['kind']}-{v['case']}".replace(" ", "-")
)
def test_invalid_bytes_are_read_or_refused_as_in_java(vector: dict[str, Any]) -> None:
    decode = DECODERS[vector["kind"]]
    if isinstance(vector["result"], str):
        assert str(decode(given_bytes(vector))) == vector["result"]
    else:
        with pytest.raises(RecordError, match=expected_message(vector["result"]["message"])):
            decode(given_bytes(vector))


@pytest.mark.parametrize(("text", "result"), VECTORS["decode_topic_partition"])
def test_a_topic_partition_is_split_as_in_java(text: str, result: Any) -> None:
    if isinstance(result, dict):
        with pytest.raises(ValueError, match="not of the form"):
            TopicPartition.parse(text)
    else:
        assert TopicPartition.parse(text) == tuple(result)


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("offset_sync", "connect-mode.offset-syncs"),
        ("offset_sync", "dedicated-mode.offset-syncs"),
        ("offset_sync", "exactly-once.offset-syncs"),
        ("offset_sync", "separator-underscore-syncs-on-target.offset-syncs"),
        ("checkpoint", "connect-mode.checkpoints"),
        ("checkpoint", "dedicated-mode.checkpoints"),
        ("checkpoint", "exactly-once.checkpoints"),
        ("checkpoint", "separator-underscore-syncs-on-target.checkpoints"),
        ("heartbeat", "connect-mode.heartbeats"),
        ("heartbeat", "dedicated-mode.heartbeats"),
        ("heartbeat", "dedicated-mode.heartbeats-on-source"),
    ],
)
def test_every_recorded_record_is_read_and_written_back(kind: str, file: str) -> None:
    recorded = golden_records(f"topics/{file}.jsonl")
    assert recorded
    for item in recorded:
        assert DECODERS[kind](item.record).encode() == item.record


class TestSerde:
    """Upstream's OffsetSyncTest, CheckpointTest and HeartbeatTest."""

    @settings(max_examples=30)
    @given(partitions, int64s, int64s)
    def test_serde_of_offset_sync(self, partition: TopicPartition, up: int, down: int) -> None:
        value = OffsetSync(partition=partition, upstream=up, downstream=down)
        assert OffsetSync.decode(value.encode()) == value

    @settings(max_examples=30)
    @given(texts, partitions, int64s, int64s, texts)
    def test_serde_of_checkpoint(
        self, group: str, partition: TopicPartition, up: int, down: int, metadata: str
    ) -> None:
        value = Checkpoint(
            group=group, partition=partition, upstream=up, downstream=down, metadata=metadata
        )
        assert Checkpoint.decode(value.encode()) == value

    @settings(max_examples=30)
    @given(texts, texts, int64s)
    def test_serde_of_heartbeat(self, source: str, target: str, timestamp_ms: int) -> None:
        value = Heartbeat(source=source, target=target, timestamp_ms=timestamp_ms)
        assert Heartbeat.decode(value.encode()) == value


def of_version(version: int, record: RecordBytes) -> RecordBytes:
    assert record.value is not None
    return RecordBytes(record.key, version.to_bytes(2, "big") + record.value[2:])


def test_checkpoint_deserialize_rejects_unsupported_value_version() -> None:
    """Upstream's MirrorRecordVersionTest; 4.3 still reads what 4.4 refuses."""
    value = Checkpoint(group="g", partition=TopicPartition("t", 0), upstream=1, downstream=2)
    newer = of_version(1, value.encode())
    assert Checkpoint.decode(newer) == value
    assert Checkpoint.decode(value.encode(), strict=True) == value
    with pytest.raises(RecordError, match="Version 1 of a checkpoint is not supported"):
        Checkpoint.decode(newer, strict=True)


def test_heartbeat_deserialize_rejects_unsupported_value_version() -> None:
    """Upstream's MirrorRecordVersionTest; 4.3 still reads what 4.4 refuses."""
    value = Heartbeat(source="a", target="b", timestamp_ms=3)
    newer = of_version(7, value.encode())
    assert Heartbeat.decode(newer) == value
    assert Heartbeat.decode(value.encode(), strict=True) == value
    with pytest.raises(RecordError, match="Version 7 of a heartbeat is not supported"):
        Heartbeat.decode(newer, strict=True)


def test_values_beyond_the_format_are_refused() -> None:
    with pytest.raises(RecordError, match="larger than the maximum string length"):
        Heartbeat(source="a" * 32768, target="b", timestamp_ms=0).encode()
    with pytest.raises(RecordError, match="does not fit in 8 bytes"):
        Heartbeat(source="a", target="b", timestamp_ms=2**63).encode()


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert Heartbeat(source="\ud800", target="b", timestamp_ms=0).encode().key == b"\0\1?\0\1b"
