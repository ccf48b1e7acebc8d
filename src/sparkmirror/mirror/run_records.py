"""Segments of run maps as records of Connect's offsets topic, under a name no connector has.

    key    ["sparkmirror:runs:<connector>",{"cluster":"A","partition":0,"segment":5,"topic":"t"}]
    value  {"runs":"<base64>","source":120,"target":85,"target_id":"<hex>"}     or a tombstone

`runs` is the segment (`run_codec`, compressed). `source` and `target` are the positions up to which
nothing is missing. `target_id` is the remote topic that the offsets mean: one that was deleted and
created again has another. Java passes over such records: it looks for keys of its own connectors.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.errors import RecordError
from sparkmirror.mirror import run_codec
from sparkmirror.mirror.connect_offsets import SourceOffset, StoredOffset
from sparkmirror.mirror.run_segments import combined
from sparkmirror.mirror.runs import RunMap
from sparkmirror.model import TopicPartition

PREFIX = "sparkmirror:runs:"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentKey:
    """Which segment of which partition, and whose."""

    connector: str
    cluster: str
    partition: TopicPartition
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """What is kept of one segment."""

    runs: RunMap
    position: int
    """The source position up to which nothing is missing."""
    expected: int
    """The target offset that comes next."""
    target_topic_id: str = ""


def to_stored(key: SegmentKey, segment: Segment | None) -> StoredOffset:
    """Write a segment as a record; without one, a tombstone."""
    value: SourceOffset | None = None
    if segment is not None:
        packed = zlib.compress(run_codec.encode(segment.runs), level=1)
        value = {
            "runs": base64.b64encode(packed).decode("ascii"),
            "source": segment.position,
            "target": segment.expected,
            "target_id": segment.target_topic_id,
        }
    return StoredOffset(
        connector=f"{PREFIX}{key.connector}",
        partition={
            "cluster": key.cluster,
            "partition": key.partition.partition,
            "segment": key.number,
            "topic": key.partition.topic,
        },
        offset=value,
    )


def key_of(stored: StoredOffset) -> SegmentKey | None:
    """Read whose segment a record is about; None if it is about something else."""
    if not stored.connector.startswith(PREFIX):
        return None
    match dict(stored.partition or {}):
        case {
            "cluster": str(cluster),
            "partition": int(partition),
            "segment": int(number),
            "topic": str(topic),
        }:
            return SegmentKey(
                connector=stored.connector.removeprefix(PREFIX),
                cluster=cluster,
                partition=TopicPartition(topic, partition),
                number=number,
            )
    return None


def segment_of(stored: StoredOffset) -> Segment | None:
    """Read a segment; None if it was removed. Raises RecordError if it makes no sense."""
    match dict(stored.offset or {}):
        case {"runs": str(runs), "source": int(position), "target": int(expected), **others}:
            return Segment(
                runs=_unpacked(runs),
                position=position,
                expected=expected,
                target_topic_id=str(others.get("target_id", "")),
            )
        case {}:
            return None
    raise RecordError("A segment of a run map lacks its runs or its positions")


def _unpacked(text: str) -> RunMap:
    try:
        return run_codec.decode(zlib.decompress(base64.b64decode(text, validate=True)))
    except (binascii.Error, zlib.error) as error:
        raise RecordError(f"A segment of a run map is damaged: {error}") from error


class KnownRuns(Mapping[TopicPartition, RunMap]):
    """The run maps of one source cluster, as far as records of the offsets topic told of them.

    If several connectors copied a partition, the one that wrote last is believed.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._segments: dict[TopicPartition, dict[str, dict[int, Segment]]] = {}
        self._latest: dict[TopicPartition, str] = {}
        self._maps: dict[TopicPartition, RunMap] = {}
        self._targets: Mapping[TopicPartition, str] = {}

    def apply(self, stored: StoredOffset) -> None:
        """Take in a record; what is not about this cluster's runs is passed over."""
        key = key_of(stored)
        if key is None or key.cluster != self._cluster:
            return
        segment = segment_of(stored)
        segments = self._segments.setdefault(key.partition, {}).setdefault(key.connector, {})
        if segment is None:
            segments.pop(key.number, None)
        else:
            segments[key.number] = segment
            self._latest[key.partition] = key.connector
        self._maps.pop(key.partition, None)

    def believe(self, targets: Mapping[TopicPartition, str]) -> None:
        """Say which topic each partition's copy is now, by id, where brokers give ids.

        Runs that lead to another topic of the same name mean nothing any more.
        """
        self._targets = targets

    def __getitem__(self, partition: TopicPartition) -> RunMap:
        segments = self._segments[partition][self._latest[partition]]
        kept = [segments[number] for number in sorted(segments)]
        if not kept or not self._is_current(partition, kept[-1]):
            raise KeyError(partition)
        if partition not in self._maps:
            here = kept[-1].target_topic_id
            self._maps[partition] = combined(s.runs for s in kept if s.target_topic_id == here)
        return self._maps[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return (partition for partition in self._latest if partition in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, partition: object) -> bool:
        return isinstance(partition, TopicPartition) and self.get(partition) is not None

    def _is_current(self, partition: TopicPartition, segment: Segment) -> bool:
        now = self._targets.get(partition, "")
        return not now or not segment.target_topic_id or now == segment.target_topic_id
