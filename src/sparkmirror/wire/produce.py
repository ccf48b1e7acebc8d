"""Produce requests and answers, by hand: batches are sent from where they lie.

    version   brokers   what it adds
    7         2.1       zstd
    8         2.4       which records made the broker refuse a batch
    9         2.8       the flexible dialect
    10        3.7       a broker that no longer leads names its successor and its address
    11        3.8       120, for a transaction that must be aborted
    12        4.0       a transactional batch joins its partition to the transaction by itself
    13        4.1       topics by id, so that a recreated topic is never mistaken for the old one

Invariant: one request holds at most one batch of a partition. A broker that finds two keeps the
last and drops the other without a word, so this refuses to send them. Always with acks=-1: a
sequence protects nothing otherwise. Answers come in any order and are told by topic and partition.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.fields import (
    INT32,
    NO_TAGS,
    compact_string,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
    string,
    uvarint,
)
from sparkmirror.wire.header import Data
from sparkmirror.wire.leaders import Broker, Leader, read_endpoints, read_leader
from sparkmirror.wire.request import Request
from sparkmirror.wire.topickey import TopicKey, as_name, compact_topic, read_compact_topic
from sparkmirror.wire.versions import Versions

API_KEY = 0
BY_NAME = (7, 8, 9, 10, 11, 12)
BY_ID = (13,)
LAST_THAT_DOES_NOT_JOIN = 11
"""The highest version for a transaction whose partitions are added one by one."""
NOT_JOINING = tuple(version for version in BY_NAME if version <= LAST_THAT_DOES_NOT_JOIN)
FIRST_WITH_RECORD_ERRORS = 8
FIRST_FLEXIBLE = 9
FIRST_BY_ID = 13

_ALL_REPLICAS = -1
_REQUEST = struct.Struct(">hi")
_INDEX_AND_SIZE = struct.Struct(">ii")
_PARTITION = struct.Struct(">ihqqq")
_LEADER_TAG, _ENDPOINTS_TAG = 0, 0


class OutgoingBatch(NamedTuple):
    """One batch for one partition, in pieces that are sent one after the other."""

    topic: TopicKey
    partition: int
    buffers: Sequence[Data]


class RefusedRecord(NamedTuple):
    """A record that made the broker refuse its batch."""

    place: int
    """Counted from 0 in the batch."""
    message: str | None


class Acknowledgement(NamedTuple):
    """What became of one partition's batch. Times and offsets are -1 where nothing is said."""

    topic: TopicKey
    partition: int
    error: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    refused: Sequence[RefusedRecord]
    message: str | None
    leader: Leader | None


@dataclass(slots=True, kw_only=True)
class ProduceAnswer:
    """What a broker answered, by topic (as it was named in the request) and partition."""

    throttle_time_ms: int
    acknowledgements: dict[tuple[TopicKey, int], Acknowledgement]
    endpoints: tuple[Broker, ...]


def takes_ids(versions: Versions) -> bool:
    """Tell whether the broker can be given topic ids."""
    _, highest = versions.ranges.get(API_KEY, (0, 0))
    return highest >= FIRST_BY_ID


def produce_version(versions: Versions, *, by_id: bool, joins: bool = True) -> int:
    """Choose the version for topics by id or by name.

    `joins` is false for a transaction whose partitions are added one by one.
    """
    assert joins or not by_id, "whoever takes ids lets partitions join by themselves"
    known = BY_ID if by_id else BY_NAME if joins else NOT_JOINING
    return versions.choose("Produce", API_KEY, known)


def produce_request(
    version: int,
    batches: Iterable[OutgoingBatch],
    *,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> Request[ProduceAnswer]:
    """Append one batch to each of some partitions."""
    topics: dict[TopicKey, dict[int, OutgoingBatch]] = {}
    for batch in batches:
        partitions = topics.setdefault(batch.topic, {})
        if batch.partition in partitions:
            raise ValueError(
                f"two batches for partition {batch.partition} of {batch.topic} in one request:"
                " the broker would drop the first"
            )
        partitions[batch.partition] = batch
    flexible = version >= FIRST_FLEXIBLE
    terms = _REQUEST.pack(_ALL_REPLICAS, timeout_ms)
    if flexible:
        front = compact_string(transactional_id) + terms
        body = _flexible_body(front, topics, by_id=version >= FIRST_BY_ID)
    else:
        body = _body(string(transactional_id) + terms, topics)
    return Request(
        name="Produce",
        api_key=API_KEY,
        version=version,
        flexible=flexible,
        body=body,
        decode=partial(_read_flexible if flexible else _read, version),
    )


def _body(front: bytes, topics: Mapping[TopicKey, Mapping[int, OutgoingBatch]]) -> list[Data]:
    """Lay out small pieces of our own between the buffers of the batches."""
    parts: list[Data] = []
    before = front + INT32.pack(len(topics))
    for topic, partitions in topics.items():
        before += string(as_name(topic, "Produce")) + INT32.pack(len(partitions))
        for index, batch in partitions.items():
            size = sum(map(len, batch.buffers))
            parts.append(before + _INDEX_AND_SIZE.pack(index, size))
            parts += batch.buffers
            before = b""
    parts.append(before)
    return parts


def _flexible_body(
    front: bytes, topics: Mapping[TopicKey, Mapping[int, OutgoingBatch]], *, by_id: bool
) -> list[Data]:
    parts: list[Data] = []
    before = front + uvarint(len(topics) + 1)
    for topic, partitions in topics.items():
        key = compact_topic(topic, "Produce", by_id=by_id)
        before += key + uvarint(len(partitions) + 1)
        for index, batch in partitions.items():
            size = sum(map(len, batch.buffers))
            parts.append(before + INT32.pack(index) + uvarint(size + 1))
            parts += batch.buffers
            before = NO_TAGS
        before += NO_TAGS
    parts.append(before + NO_TAGS)
    return parts


def _read(version: int, frame: Frame, at: int) -> ProduceAnswer:
    view = frame.view
    topics, at = read_count(view, at)
    acknowledgements: dict[tuple[TopicKey, int], Acknowledgement] = {}
    for _ in range(topics):
        topic, at = read_string(view, at)
        count, at = read_count(view, at)
        for _ in range(count):
            index, error, base, time_ms, start = _PARTITION.unpack_from(view, at)
            at += _PARTITION.size
            refused: Sequence[RefusedRecord] = ()
            message = None
            if version >= FIRST_WITH_RECORD_ERRORS:
                refused, at = _read_refused(view, at)
                message, at = read_string(view, at)
            name = topic or ""
            acknowledgements[name, index] = Acknowledgement(
                name, index, error, base, time_ms, start, refused, message, None
            )
    (throttle_time_ms,) = INT32.unpack_from(view, at)
    return ProduceAnswer(
        throttle_time_ms=throttle_time_ms, acknowledgements=acknowledgements, endpoints=()
    )


def _read_refused(view: memoryview, at: int) -> tuple[list[RefusedRecord], int]:
    count, at = read_count(view, at)
    refused = []
    for _ in range(count):
        (index,) = INT32.unpack_from(view, at)
        message, at = read_string(view, at + INT32.size)
        refused.append(RefusedRecord(index, message))
    return refused, at


def _read_flexible(version: int, frame: Frame, at: int) -> ProduceAnswer:
    view = frame.view
    topics, at = read_compact_count(view, at)
    acknowledgements: dict[tuple[TopicKey, int], Acknowledgement] = {}
    for _ in range(topics):
        topic, at = read_compact_topic(view, at, by_id=version >= FIRST_BY_ID)
        count, at = read_compact_count(view, at)
        for _ in range(count):
            acknowledgement, at = _read_flexible_partition(topic, view, at)
            acknowledgements[topic, acknowledgement.partition] = acknowledgement
        _, at = read_tags(view, at)
    (throttle_time_ms,) = INT32.unpack_from(view, at)
    tags, at = read_tags(view, at + INT32.size)
    return ProduceAnswer(
        throttle_time_ms=throttle_time_ms,
        acknowledgements=acknowledgements,
        endpoints=read_endpoints(tags.get(_ENDPOINTS_TAG)),
    )


def _read_flexible_partition(
    topic: TopicKey, view: memoryview, at: int
) -> tuple[Acknowledgement, int]:
    index, error, base, time_ms, start = _PARTITION.unpack_from(view, at)
    count, at = read_compact_count(view, at + _PARTITION.size)
    refused = []
    for _ in range(count):
        (record,) = INT32.unpack_from(view, at)
        said, at = read_compact_string(view, at + INT32.size)
        _, at = read_tags(view, at)
        refused.append(RefusedRecord(record, said))
    message, at = read_compact_string(view, at)
    tags, at = read_tags(view, at)
    leader = read_leader(tags.get(_LEADER_TAG))
    return (
        Acknowledgement(topic, index, error, base, time_ms, start, refused, message, leader),
        at,
    )
