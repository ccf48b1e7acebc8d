"""Produce requests and responses, encoded here: batches are sent without a copy.

    version   brokers   what it adds
    7         2.1       zstd
    8         2.4       the records for which the broker refuses a batch
    9         2.8       flexible (KIP-482)
    10        3.7       a former leader names the new leader and its address
    11        3.8       120, for a transaction that must be aborted
    12        4.0       a transactional batch adds its partition to the transaction implicitly
    13        4.1       topics by id, so that a recreated topic is not taken for the old one

Invariant: one request has at most one batch per partition. A broker stores only the last of two,
without an error, so `produce_request` refuses them. Always with acks=-1: sequences protect nothing
otherwise. Results come in any order and are matched by topic and partition.
"""

from __future__ import annotations

import struct
from builtins import memoryview
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from sparkmirror.wire.batch.header import BytesLike
from sparkmirror.wire.net.buffer_pool import ResponseFrame
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.primitive_types import (
    EMPTY_TAG_BUFFER,
    INT32,
    encode_compact_string,
    encode_string,
    encode_uvarint,
    read_array_length,
    read_compact_array_length,
    read_compact_string,
    read_string,
    read_tagged_fields,
)
from sparkmirror.wire.protocol.request import ClientRequest
from sparkmirror.wire.protocol.topics.current_leader import (
    BrokerNode,
    LeaderAndEpoch,
    read_current_leader,
    read_node_endpoints,
)
from sparkmirror.wire.protocol.topics.topic_key import (
    TopicKey,
    encode_compact_topic,
    read_compact_topic,
    require_name,
)

API_KEY: Final = 0
VERSIONS_BY_NAME: Final = (7, 8, 9, 10, 11, 12)
VERSIONS_BY_ID: Final = (13,)
LAST_WITH_EXPLICIT_ADD: Final = 11
"""The highest version for a transaction whose partitions are added one by one."""
VERSIONS_WITH_EXPLICIT_ADD: Final = tuple(
    version for version in VERSIONS_BY_NAME if version <= LAST_WITH_EXPLICIT_ADD
)
FIRST_WITH_RECORD_ERRORS: Final = 8
FIRST_FLEXIBLE: Final = 9
FIRST_BY_ID: Final = 13

_ACKS_ALL: Final = -1
_REQUEST: Final = struct.Struct(">hi")
_INDEX_AND_SIZE: Final = struct.Struct(">ii")
_PARTITION: Final = struct.Struct(">ihqqq")
_LEADER_TAG: Final = 0
_ENDPOINTS_TAG: Final = 0
_MAX_FIXED_BYTES: Final = 40
"""Length 4, header 10 and a tag, lengths of two texts 2 to 5 each, acks and timeout 6, topics 5, a
tag."""
_MAX_PARTITION_BYTES: Final = 40
"""A topic id 16 or the length of a name, partitions 5, index 4, size 5, two tags."""


class OutgoingBatch(NamedTuple):
    """One batch for one partition, in buffers that are sent one after the other."""

    topic: TopicKey
    partition: int
    buffers: Sequence[BytesLike]


class ProduceRecordError(NamedTuple):
    """A record for which the broker refused its batch."""

    batch_index: int
    """The index of the record in the batch, from 0."""
    message: str | None


class PartitionProduceResponse(NamedTuple):
    """The result of one partition's batch. Times and offsets are -1 if the broker gives none."""

    topic: TopicKey
    partition: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: Sequence[ProduceRecordError]
    error_message: str | None
    current_leader: LeaderAndEpoch | None


@dataclass(slots=True, kw_only=True)
class ProduceResponseData:
    """A Produce response, by topic (name or id, as in the request) and partition."""

    throttle_time_ms: int
    partition_responses: dict[tuple[TopicKey, int], PartitionProduceResponse]
    node_endpoints: tuple[BrokerNode, ...]


def max_batch_bytes(
    max_request_size: int, topic: str, *, client_id: str, transactional_id: str = ""
) -> int:
    """Return the largest batch for which a request with this batch alone keeps the limit."""
    return max_request_size - (
        request_overhead(client_id, transactional_id) + partition_overhead(topic)
    )


def request_overhead(client_id: str, transactional_id: str = "") -> int:
    """The most bytes of a request apart from its partitions, its length on the wire included."""
    return _MAX_FIXED_BYTES + len(client_id.encode()) + len(transactional_id.encode())


def partition_overhead(topic: str) -> int:
    """The most bytes that a partition adds to a request apart from its batch."""
    return _MAX_PARTITION_BYTES + len(topic.encode())


def supports_topic_ids(versions: NodeApiVersions) -> bool:
    """Whether the broker accepts topic ids."""
    _, highest = versions.ranges.get(API_KEY, (0, 0))
    return highest >= FIRST_BY_ID


def produce_version(versions: NodeApiVersions, *, by_id: bool, implicit_add: bool = True) -> int:
    """Choose the version for topics by id or by name.

    `implicit_add` is false for a transaction whose partitions are added one by one.
    """
    assert implicit_add or not by_id, "every version with topic ids adds partitions implicitly"
    usable = (
        VERSIONS_BY_ID
        if by_id
        else VERSIONS_BY_NAME
        if implicit_add
        else VERSIONS_WITH_EXPLICIT_ADD
    )
    return versions.latest_usable_version("Produce", API_KEY, usable)


def produce_request(
    version: int,
    batches: Iterable[OutgoingBatch],
    *,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> ClientRequest[ProduceResponseData]:
    """Append one batch to each of some partitions."""
    topics: dict[TopicKey, dict[int, OutgoingBatch]] = {}
    for batch in batches:
        partitions = topics.setdefault(batch.topic, {})
        if batch.partition in partitions:
            raise ValueError(
                f"two batches for partition {batch.partition} of {batch.topic!r} in one request:"
                " the broker would drop the first"
            )
        partitions[batch.partition] = batch
    flexible = version >= FIRST_FLEXIBLE
    acks_and_timeout = _REQUEST.pack(_ACKS_ALL, timeout_ms)
    if flexible:
        front = encode_compact_string(transactional_id) + acks_and_timeout
        body = _flexible_body(front, topics, by_id=version >= FIRST_BY_ID)
    else:
        body = _body(encode_string(transactional_id) + acks_and_timeout, topics)
    return ClientRequest(
        name="Produce",
        api_key=API_KEY,
        version=version,
        flexible=flexible,
        body=body,
        decode=partial(_read_flexible_response if flexible else _read_response, version),
    )


def _body(front: bytes, topics: Mapping[TopicKey, Mapping[int, OutgoingBatch]]) -> list[BytesLike]:
    """Return the buffers of the batches with the encoded fields between them."""
    parts: list[BytesLike] = []
    before = front + INT32.pack(len(topics))
    for topic, partitions in topics.items():
        before += encode_string(require_name(topic, "Produce")) + INT32.pack(len(partitions))
        for index, batch in partitions.items():
            size = sum(map(len, batch.buffers))
            parts.append(before + _INDEX_AND_SIZE.pack(index, size))
            parts += batch.buffers
            before = b""
    parts.append(before)
    return parts


def _flexible_body(
    front: bytes, topics: Mapping[TopicKey, Mapping[int, OutgoingBatch]], *, by_id: bool
) -> list[BytesLike]:
    parts: list[BytesLike] = []
    before = front + encode_uvarint(len(topics) + 1)
    for topic, partitions in topics.items():
        key = encode_compact_topic(topic, "Produce", by_id=by_id)
        before += key + encode_uvarint(len(partitions) + 1)
        for index, batch in partitions.items():
            size = sum(map(len, batch.buffers))
            parts.append(before + INT32.pack(index) + encode_uvarint(size + 1))
            parts += batch.buffers
            before = EMPTY_TAG_BUFFER
        before += EMPTY_TAG_BUFFER
    parts.append(before + EMPTY_TAG_BUFFER)
    return parts


def _read_response(version: int, frame: ResponseFrame, at: int) -> ProduceResponseData:
    view = frame.view
    topics, at = read_array_length(view, at)
    acknowledgements: dict[tuple[TopicKey, int], PartitionProduceResponse] = {}
    for _ in range(topics):
        topic, at = read_string(view, at)
        count, at = read_array_length(view, at)
        for _ in range(count):
            index, error, base, time_ms, start = _PARTITION.unpack_from(view, at)
            at += _PARTITION.size
            refused: Sequence[ProduceRecordError] = ()
            message = None
            if version >= FIRST_WITH_RECORD_ERRORS:
                refused, at = _read_record_errors(view, at)
                message, at = read_string(view, at)
            name = topic or ""
            acknowledgements[name, index] = PartitionProduceResponse(
                name, index, error, base, time_ms, start, refused, message, None
            )
    (throttle_time_ms,) = INT32.unpack_from(view, at)
    return ProduceResponseData(
        throttle_time_ms=throttle_time_ms, partition_responses=acknowledgements, node_endpoints=()
    )


def _read_record_errors(view: memoryview, at: int) -> tuple[list[ProduceRecordError], int]:
    count, at = read_array_length(view, at)
    refused = []
    for _ in range(count):
        (index,) = INT32.unpack_from(view, at)
        message, at = read_string(view, at + INT32.size)
        refused.append(ProduceRecordError(index, message))
    return refused, at


def _read_flexible_response(version: int, frame: ResponseFrame, at: int) -> ProduceResponseData:
    view = frame.view
    topics, at = read_compact_array_length(view, at)
    acknowledgements: dict[tuple[TopicKey, int], PartitionProduceResponse] = {}
    for _ in range(topics):
        topic, at = read_compact_topic(view, at, by_id=version >= FIRST_BY_ID)
        count, at = read_compact_array_length(view, at)
        for _ in range(count):
            acknowledgement, at = _read_flexible_partition(topic, view, at)
            acknowledgements[topic, acknowledgement.partition] = acknowledgement
        _, at = read_tagged_fields(view, at)
    (throttle_time_ms,) = INT32.unpack_from(view, at)
    tags, at = read_tagged_fields(view, at + INT32.size)
    return ProduceResponseData(
        throttle_time_ms=throttle_time_ms,
        partition_responses=acknowledgements,
        node_endpoints=read_node_endpoints(tags.get(_ENDPOINTS_TAG)),
    )


def _read_flexible_partition(
    topic: TopicKey, view: memoryview, at: int
) -> tuple[PartitionProduceResponse, int]:
    index, error, base, time_ms, start = _PARTITION.unpack_from(view, at)
    count, at = read_compact_array_length(view, at + _PARTITION.size)
    refused = []
    for _ in range(count):
        (record,) = INT32.unpack_from(view, at)
        reason, at = read_compact_string(view, at + INT32.size)
        _, at = read_tagged_fields(view, at)
        refused.append(ProduceRecordError(record, reason))
    message, at = read_compact_string(view, at)
    tags, at = read_tagged_fields(view, at)
    leader = read_current_leader(tags.get(_LEADER_TAG))
    return (
        PartitionProduceResponse(
            topic, index, error, base, time_ms, start, refused, message, leader
        ),
        at,
    )
