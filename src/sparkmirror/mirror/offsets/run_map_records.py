"""Segments of run maps as records of Connect's offsets topic.

    key    ["sparkmirror:runs:<connector>",{"cluster":"A","partition":0,"segment":5,"topic":"t"}]
    value  {"runs":"<base64>","source":120,"target":85,"target_id":"<hex>"}     or a tombstone

`runs` is the segment (`run_map_codec`, compressed). `source` and `target` are the positions up to
which the map is complete. `target_id` is the topic id of the remote topic: it changes if the topic
is deleted and created again. Java ignores these records, because no connector has such a name.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics.connect_offsets import SourceOffset, StoredOffset
from sparkmirror.mirror.offsets import run_map_codec
from sparkmirror.mirror.offsets.run_map import RunMap
from sparkmirror.mirror.offsets.run_map_segments import combine_segments
from sparkmirror.model import TopicPartition

RUNS_KEY_PREFIX = "sparkmirror:runs:"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMapSegmentKey:
    """The key of a segment: connector, source cluster, partition and segment number."""

    connector: str
    cluster: str
    partition: TopicPartition
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMapSegment:
    """The value of a segment."""

    runs: RunMap
    source_position: int
    """The source position up to which the map is complete."""
    next_target_offset: int
    """The next target offset after the map."""
    target_topic_id: str = ""


def encode_segment(key: RunMapSegmentKey, segment: RunMapSegment | None) -> StoredOffset:
    """Return the record of a segment; None is a tombstone."""
    value: SourceOffset | None = None
    if segment is not None:
        packed = zlib.compress(run_map_codec.encode_run_map(segment.runs), level=1)
        value = {
            "runs": base64.b64encode(packed).decode("ascii"),
            "source": segment.source_position,
            "target": segment.next_target_offset,
            "target_id": segment.target_topic_id,
        }
    return StoredOffset(
        connector=f"{RUNS_KEY_PREFIX}{key.connector}",
        partition={
            "cluster": key.cluster,
            "partition": key.partition.partition,
            "segment": key.number,
            "topic": key.partition.topic,
        },
        offset=value,
    )


def decode_segment_key(stored: StoredOffset) -> RunMapSegmentKey | None:
    """Return the key of a segment; None if the record is not a segment."""
    if not stored.connector.startswith(RUNS_KEY_PREFIX):
        return None
    match dict(stored.partition or {}):
        case {
            "cluster": str(cluster),
            "partition": int(partition),
            "segment": int(number),
            "topic": str(topic),
        }:
            return RunMapSegmentKey(
                connector=stored.connector.removeprefix(RUNS_KEY_PREFIX),
                cluster=cluster,
                partition=TopicPartition(topic, partition),
                number=number,
            )
    return None


def decode_segment(stored: StoredOffset) -> RunMapSegment | None:
    """Return the segment of a record; None for a tombstone. Raises RecordError."""
    match dict(stored.offset or {}):
        case {"runs": str(runs), "source": int(source), "target": int(target), **others}:
            return RunMapSegment(
                runs=_decode_runs(runs),
                source_position=source,
                next_target_offset=target,
                target_topic_id=str(others.get("target_id", "")),
            )
        case {}:
            return None
    raise RecordError("A segment of a run map lacks its runs or its positions")


def _decode_runs(text: str) -> RunMap:
    try:
        return run_map_codec.decode_run_map(zlib.decompress(base64.b64decode(text, validate=True)))
    except (binascii.Error, zlib.error) as error:
        raise RecordError(f"A segment of a run map is damaged: {error}") from error


class RunMapsState(Mapping[TopicPartition, RunMap]):
    """The run maps of one source cluster, as of the last applied record.

    If several connectors have copied a partition, the map of the last writer is used.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._segments: dict[TopicPartition, dict[str, dict[int, RunMapSegment]]] = {}
        self._latest_connector: dict[TopicPartition, str] = {}
        self._maps: dict[TopicPartition, RunMap] = {}
        self._target_topic_ids: Mapping[TopicPartition, str] = {}

    def apply(self, stored: StoredOffset) -> None:
        """Apply a record. One that is not a segment of this cluster is ignored."""
        key = decode_segment_key(stored)
        if key is None or key.cluster != self._cluster:
            return
        segment = decode_segment(stored)
        segments = self._segments.setdefault(key.partition, {}).setdefault(key.connector, {})
        if segment is None:
            segments.pop(key.number, None)
        else:
            segments[key.number] = segment
            self._latest_connector[key.partition] = key.connector
        self._maps.pop(key.partition, None)

    def set_target_topic_ids(self, targets: Mapping[TopicPartition, str]) -> None:
        """Set the current topic ids of the remote topics, where brokers have topic ids.

        Runs of an earlier topic of the same name are not used.
        """
        self._target_topic_ids = targets

    def __getitem__(self, partition: TopicPartition) -> RunMap:
        segments = self._segments[partition][self._latest_connector[partition]]
        kept = [segments[number] for number in sorted(segments)]
        if not kept or not self._is_current(partition, kept[-1]):
            raise KeyError(partition)
        if partition not in self._maps:
            target_topic_id = kept[-1].target_topic_id
            self._maps[partition] = combine_segments(
                s.runs for s in kept if s.target_topic_id == target_topic_id
            )
        return self._maps[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return (partition for partition in self._latest_connector if partition in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, partition: object) -> bool:
        return isinstance(partition, TopicPartition) and self.get(partition) is not None

    def _is_current(self, partition: TopicPartition, segment: RunMapSegment) -> bool:
        current = self._target_topic_ids.get(partition, "")
        return not current or not segment.target_topic_id or current == segment.target_topic_id
