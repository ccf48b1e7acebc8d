"""Fetch requests and responses, encoded here: record batches stay in the received frame.

    version   brokers   what it adds
    6         1.0       the last one that Event Hubs has; without sessions and leader epochs
    10        2.1       zstd
    11        2.3       the rack of the client, and the replica that it should read from
    12        2.7       flexible (KIP-482); the epoch of the last batch, to detect truncation
    13        3.1       topics by id, so that a recreated topic is not taken for the old one
    16        3.7       a former leader names the new leader and its address

With a session (`fetch_session`) a request names only partitions that have changed, and so does the
response. The records of a partition are a view into the frame of the response. A caller that keeps
a batch after the call of `on_response` retains the frame.
"""

from __future__ import annotations

import struct
from builtins import memoryview
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
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
    read_string,
    read_tagged_fields,
    read_uvarint,
    slice_exactly,
)
from sparkmirror.wire.protocol.request import ClientRequest
from sparkmirror.wire.protocol.topics.current_leader import (
    NO_LEADER_EPOCH,
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

API_KEY: Final = 1
VERSIONS_BY_NAME: Final = (6, 10, 11, 12)
VERSIONS_BY_ID: Final = (13, 16)
FIRST_WITH_SESSION_AND_EPOCH: Final = 10
"""Of the versions used here."""
FIRST_WITH_RACK: Final = 11
FIRST_FLEXIBLE: Final = 12
FIRST_BY_ID: Final = 13
FIRST_WITHOUT_REPLICA_ID: Final = 15

_CONSUMER_REPLICA_ID: Final = -1
_NO_LOG_START_OFFSET: Final = -1
_REPLICA: Final = struct.Struct(">i")
_REQUEST: Final = struct.Struct(">iiib")
_SESSION: Final = struct.Struct(">ii")
_OLD_FETCH_PARTITION: Final = struct.Struct(">iqqi")
_FETCH_PARTITION: Final = struct.Struct(">iiqqi")
_FLEXIBLE_FETCH_PARTITION: Final = struct.Struct(">iiqiqix")
_OLD_RESPONSE: Final = struct.Struct(">i")
_RESPONSE: Final = struct.Struct(">ihi")
_PARTITION: Final = struct.Struct(">ihqqq")
_ABORTED: Final = struct.Struct(">qq")
_EPOCH_END: Final = struct.Struct(">iq")
_DIVERGING_TAG: Final = 0
_LEADER_TAG: Final = 1
_ENDPOINTS_TAG: Final = 0


NO_SESSION: Final = (0, -1)
"""A request without a session; (0, 0) requests one."""

TopicKeyPartition: TypeAlias = tuple[TopicKey, int]


class FetchPosition(NamedTuple):
    """The offset to fetch in one partition, and the expected epochs of its log."""

    topic: TopicKey
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = NO_LEADER_EPOCH
    """The expected epoch of the leader; the broker refuses another one. -1: any."""
    last_fetched_epoch: int = NO_LEADER_EPOCH
    """The epoch of the batch before the offset; the broker reports where logs diverge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchParams:
    """Limits of a fetch: bytes and waiting time."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 4 << 20
    read_committed: bool = False
    rack: str = ""
    session: tuple[int, int] = NO_SESSION
    """The id and the epoch of a session."""
    forgotten: tuple[TopicKeyPartition, ...] = ()
    """Partitions to remove from the session."""


class EpochEndOffset(NamedTuple):
    """The end of an epoch in the broker's log. What was read of it beyond that is truncated."""

    epoch: int
    end_offset: int


class FetchedPartition(NamedTuple):
    """One partition of a response. Offsets are -1 if the broker gives none."""

    topic: TopicKey
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted_transactions: Sequence[AbortedTransaction]
    preferred_read_replica: int
    records: memoryview
    diverging_epoch: EpochEndOffset | None
    current_leader: LeaderAndEpoch | None


@dataclass(slots=True, kw_only=True)
class FetchResponseData:
    """A Fetch response. `frame` owns the memory of all records in it."""

    throttle_time_ms: int
    error_code: int
    partitions: list[FetchedPartition]
    node_endpoints: tuple[BrokerNode, ...]
    frame: ResponseFrame
    session_id: int = 0
    """The session of the broker; 0 for none."""


def supports_topic_ids(versions: NodeApiVersions) -> bool:
    """Whether the broker accepts topic ids."""
    _, highest = versions.ranges.get(API_KEY, (0, 0))
    return highest >= FIRST_BY_ID


def fetch_version(versions: NodeApiVersions, *, by_id: bool) -> int:
    """Choose the version for topics by id or by name."""
    return versions.latest_usable_version(
        "Fetch", API_KEY, VERSIONS_BY_ID if by_id else VERSIONS_BY_NAME
    )


def fetch_request(
    version: int, limits: FetchParams, positions: Iterable[FetchPosition]
) -> ClientRequest[FetchResponseData]:
    """Build a request for the records at the positions. The broker serves them in this order."""
    topics: dict[TopicKey, list[FetchPosition]] = {}
    for position in positions:
        topics.setdefault(position.topic, []).append(position)
    flexible = version >= FIRST_FLEXIBLE
    encode = _flexible_body if flexible else _body
    return ClientRequest(
        name="Fetch",
        api_key=API_KEY,
        version=version,
        flexible=flexible,
        body=(encode(version, limits, topics),),
        decode=partial(_read_flexible_response if flexible else _read_response, version),
    )


def _request_head(version: int, limits: FetchParams) -> bytes:
    replica = _REPLICA.pack(_CONSUMER_REPLICA_ID) if version < FIRST_WITHOUT_REPLICA_ID else b""
    session = _SESSION.pack(*limits.session) if version >= FIRST_WITH_SESSION_AND_EPOCH else b""
    return (
        replica
        + _REQUEST.pack(
            limits.max_wait_ms, limits.min_bytes, limits.max_bytes, int(limits.read_committed)
        )
        + session
    )


def _body(
    version: int, limits: FetchParams, topics: Mapping[TopicKey, Sequence[FetchPosition]]
) -> bytes:
    parts = [_request_head(version, limits), INT32.pack(len(topics))]
    for topic, positions in topics.items():
        parts += encode_string(require_name(topic, "Fetch")), INT32.pack(len(positions))
        parts += [_partition(version, position) for position in positions]
    if version < FIRST_WITH_SESSION_AND_EPOCH:
        return b"".join(parts)
    forgotten = _by_topic(limits.forgotten)
    parts.append(INT32.pack(len(forgotten)))
    for topic, partitions in forgotten.items():
        parts += encode_string(require_name(topic, "Fetch")), INT32.pack(len(partitions))
        parts += [INT32.pack(partition) for partition in partitions]
    if version >= FIRST_WITH_RACK:
        parts.append(encode_string(limits.rack))
    return b"".join(parts)


def _partition(version: int, p: FetchPosition) -> bytes:
    if version < FIRST_WITH_SESSION_AND_EPOCH:
        return _OLD_FETCH_PARTITION.pack(p.partition, p.offset, _NO_LOG_START_OFFSET, p.max_bytes)
    return _FETCH_PARTITION.pack(
        p.partition, p.leader_epoch, p.offset, _NO_LOG_START_OFFSET, p.max_bytes
    )


def _flexible_body(
    version: int, limits: FetchParams, topics: Mapping[TopicKey, Sequence[FetchPosition]]
) -> bytes:
    parts = [_request_head(version, limits), encode_uvarint(len(topics) + 1)]
    for topic, positions in topics.items():
        key = encode_compact_topic(topic, "Fetch", by_id=version >= FIRST_BY_ID)
        parts += key, encode_uvarint(len(positions) + 1)
        parts += [
            _FLEXIBLE_FETCH_PARTITION.pack(
                p.partition,
                p.leader_epoch,
                p.offset,
                p.last_fetched_epoch,
                _NO_LOG_START_OFFSET,
                p.max_bytes,
            )
            for p in positions
        ]
        parts.append(EMPTY_TAG_BUFFER)
    forgotten = _by_topic(limits.forgotten)
    parts.append(encode_uvarint(len(forgotten) + 1))
    for topic, partitions in forgotten.items():
        key = encode_compact_topic(topic, "Fetch", by_id=version >= FIRST_BY_ID)
        parts += key, encode_uvarint(len(partitions) + 1)
        parts += [INT32.pack(partition) for partition in partitions]
        parts.append(EMPTY_TAG_BUFFER)
    parts += encode_compact_string(limits.rack), EMPTY_TAG_BUFFER
    return b"".join(parts)


def _by_topic(partitions: Iterable[TopicKeyPartition]) -> dict[TopicKey, list[int]]:
    topics: dict[TopicKey, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _read_response(version: int, frame: ResponseFrame, at: int) -> FetchResponseData:
    view = frame.view
    throttle_time_ms, error, session_id, at = _read_response_head(version, view, at)
    topics, at = read_array_length(view, at)
    partitions = []
    for _ in range(topics):
        topic, at = read_string(view, at)
        count, at = read_array_length(view, at)
        for _ in range(count):
            partition, at = _read_partition(version, topic or "", view, at)
            partitions.append(partition)
    return FetchResponseData(
        throttle_time_ms=throttle_time_ms,
        error_code=error,
        partitions=partitions,
        node_endpoints=(),
        frame=frame,
        session_id=session_id,
    )


def _read_response_head(version: int, view: memoryview, at: int) -> tuple[int, int, int, int]:
    """Return the throttle time, the error code, the session id, and where the topics begin."""
    if version < FIRST_WITH_SESSION_AND_EPOCH:
        (throttle_time_ms,) = _OLD_RESPONSE.unpack_from(view, at)
        return throttle_time_ms, 0, 0, at + _OLD_RESPONSE.size
    throttle_time_ms, error, session_id = _RESPONSE.unpack_from(view, at)
    return throttle_time_ms, error, session_id, at + _RESPONSE.size


def _read_partition(
    version: int, topic: str, view: memoryview, at: int
) -> tuple[FetchedPartition, int]:
    index, error, high_watermark, stable, start = _PARTITION.unpack_from(view, at)
    count, at = read_array_length(view, at + _PARTITION.size)
    aborted = []
    for _ in range(count):
        producer_id, first_offset = _ABORTED.unpack_from(view, at)
        aborted.append(AbortedTransaction(first_offset, producer_id))
        at += _ABORTED.size
    preferred = -1
    if version >= FIRST_WITH_RACK:
        (preferred,) = INT32.unpack_from(view, at)
        at += INT32.size
    (size,) = INT32.unpack_from(view, at)
    records = slice_exactly(view, at + INT32.size, max(size, 0))
    at += INT32.size + len(records)
    partition = FetchedPartition(
        topic,
        index,
        error,
        high_watermark,
        stable,
        start,
        aborted,
        preferred,
        records,
        None,
        None,
    )
    return partition, at


def _read_flexible_response(version: int, frame: ResponseFrame, at: int) -> FetchResponseData:
    view = frame.view
    throttle_time_ms, error, session_id = _RESPONSE.unpack_from(view, at)
    topics, at = read_compact_array_length(view, at + _RESPONSE.size)
    partitions = []
    for _ in range(topics):
        topic, at = read_compact_topic(view, at, by_id=version >= FIRST_BY_ID)
        count, at = read_compact_array_length(view, at)
        for _ in range(count):
            partition, at = _read_flexible_partition(topic, view, at)
            partitions.append(partition)
        _, at = read_tagged_fields(view, at)
    tags, at = read_tagged_fields(view, at)
    return FetchResponseData(
        throttle_time_ms=throttle_time_ms,
        error_code=error,
        partitions=partitions,
        node_endpoints=read_node_endpoints(tags.get(_ENDPOINTS_TAG)),
        frame=frame,
        session_id=session_id,
    )


def _read_flexible_partition(
    topic: TopicKey, view: memoryview, at: int
) -> tuple[FetchedPartition, int]:
    index, error, high_watermark, stable, start = _PARTITION.unpack_from(view, at)
    count, at = read_compact_array_length(view, at + _PARTITION.size)
    aborted = []
    for _ in range(count):
        producer_id, first_offset = _ABORTED.unpack_from(view, at)
        aborted.append(AbortedTransaction(first_offset, producer_id))
        _, at = read_tagged_fields(view, at + _ABORTED.size)
    (preferred,) = INT32.unpack_from(view, at)
    size, at = read_uvarint(view, at + INT32.size)
    records = slice_exactly(view, at, max(size - 1, 0))
    tags, at = read_tagged_fields(view, at + len(records))
    partition = FetchedPartition(
        topic,
        index,
        error,
        high_watermark,
        stable,
        start,
        aborted,
        preferred,
        records,
        _read_epoch_end(tags.get(_DIVERGING_TAG)),
        read_current_leader(tags.get(_LEADER_TAG)),
    )
    return partition, at


def _read_epoch_end(tag: memoryview | None) -> EpochEndOffset | None:
    return None if tag is None else EpochEndOffset(*_EPOCH_END.unpack_from(tag, 0))
