"""Fetch requests and answers, by hand: the record batches stay where they were received.

    version   brokers   what it adds
    10        2.1       zstd
    11        2.3       our rack, and the replica that the broker would rather have us read
    12        2.7       the flexible dialect; the epoch of the last batch, to notice truncation
    13        3.1       topics by id, so that a recreated topic is never mistaken for the old one
    16        3.7       a broker that no longer leads names its successor and its address

With a session (`fetch_session`) a request names only the partitions that have changed, and so does
the answer. A partition's records are a view into the answer's frame: whoever keeps a batch beyond
the call that delivers the answer holds the frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from sparkmirror.wire.aborted import AbortedTransaction
from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.fields import (
    INT32,
    NO_TAGS,
    compact_string,
    piece,
    read_compact_count,
    read_count,
    read_string,
    read_tags,
    read_uvarint,
    string,
    uvarint,
)
from sparkmirror.wire.leaders import (
    NO_EPOCH,
    Broker,
    Leader,
    read_endpoints,
    read_leader,
)
from sparkmirror.wire.request import Request
from sparkmirror.wire.topickey import TopicKey, as_name, compact_topic, read_compact_topic
from sparkmirror.wire.versions import Versions

API_KEY = 1
BY_NAME = (10, 11, 12)
BY_ID = (13, 16)
FIRST_WITH_RACK = 11
FIRST_FLEXIBLE = 12
FIRST_BY_ID = 13
FIRST_WITHOUT_REPLICA = 15

_CONSUMER = -1
_NOT_A_FOLLOWER = -1
_REPLICA = struct.Struct(">i")
_REQUEST = struct.Struct(">iiibii")
_POSITION = struct.Struct(">iiqqi")
_FLEXIBLE_POSITION = struct.Struct(">iiqiqix")
_ANSWER = struct.Struct(">ihi")
_PARTITION = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_EPOCH_END = struct.Struct(">iq")
_DIVERGING_TAG, _LEADER_TAG, _ENDPOINTS_TAG = 0, 1, 0


NO_SESSION = (0, -1)
"""A request that stands for itself; (0, 0) would like a session."""

Place: TypeAlias = tuple[TopicKey, int]


class Position(NamedTuple):
    """Where to read on in one partition, and what we believe about its log."""

    topic: TopicKey
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH
    """Of the leader asked; a broker that knows better refuses. -1 asks whoever it is."""
    last_fetched_epoch: int = NO_EPOCH
    """Of the last batch read before the offset; the broker answers where logs diverge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much a fetch may bring and how long it may wait for it."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 4 << 20
    read_committed: bool = False
    rack: str = ""
    session: tuple[int, int] = NO_SESSION
    """The id of a session and how many requests it has seen."""
    forgotten: tuple[Place, ...] = ()
    """Partitions that the session is to leave out from now on."""


class EpochEnd(NamedTuple):
    """The end of an epoch in the broker's log: what we read of it beyond is not there any more."""

    epoch: int
    end_offset: int


class FetchedPartition(NamedTuple):
    """One partition's part of an answer. Offsets are -1 where the broker does not say."""

    topic: TopicKey
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction]
    preferred_read_replica: int
    records: memoryview
    diverging: EpochEnd | None
    leader: Leader | None


@dataclass(slots=True, kw_only=True)
class FetchAnswer:
    """What a broker answered. `frame` owns the memory of all records in it."""

    throttle_time_ms: int
    error: int
    partitions: list[FetchedPartition]
    endpoints: tuple[Broker, ...]
    frame: Frame
    session_id: int = 0
    """The session that the broker keeps for us; 0 for none."""


def takes_ids(versions: Versions) -> bool:
    """Tell whether the broker can be asked by topic ids."""
    _, highest = versions.ranges.get(API_KEY, (0, 0))
    return highest >= FIRST_BY_ID


def fetch_version(versions: Versions, *, by_id: bool) -> int:
    """Choose the version for topics by id or by name."""
    return versions.choose("Fetch", API_KEY, BY_ID if by_id else BY_NAME)


def fetch_request(
    version: int, limits: FetchLimits, positions: Iterable[Position]
) -> Request[FetchAnswer]:
    """Ask for what follows the positions; the broker serves them in the order given."""
    topics: dict[TopicKey, list[Position]] = {}
    for position in positions:
        topics.setdefault(position.topic, []).append(position)
    flexible = version >= FIRST_FLEXIBLE
    encode = _flexible_body if flexible else _body
    return Request(
        name="Fetch",
        api_key=API_KEY,
        version=version,
        flexible=flexible,
        body=(encode(version, limits, topics),),
        decode=partial(_read_flexible if flexible else _read, version),
    )


def _front(version: int, limits: FetchLimits) -> bytes:
    replica = _REPLICA.pack(_CONSUMER) if version < FIRST_WITHOUT_REPLICA else b""
    return replica + _REQUEST.pack(
        limits.max_wait_ms,
        limits.min_bytes,
        limits.max_bytes,
        int(limits.read_committed),
        *limits.session,
    )


def _body(
    version: int, limits: FetchLimits, topics: Mapping[TopicKey, Sequence[Position]]
) -> bytes:
    parts = [_front(version, limits), INT32.pack(len(topics))]
    for topic, positions in topics.items():
        parts += string(as_name(topic, "Fetch")), INT32.pack(len(positions))
        parts += [
            _POSITION.pack(p.partition, p.leader_epoch, p.offset, _NOT_A_FOLLOWER, p.max_bytes)
            for p in positions
        ]
    forgotten = _by_topic(limits.forgotten)
    parts.append(INT32.pack(len(forgotten)))
    for topic, places in forgotten.items():
        parts += string(as_name(topic, "Fetch")), INT32.pack(len(places))
        parts += [INT32.pack(place) for place in places]
    if version >= FIRST_WITH_RACK:
        parts.append(string(limits.rack))
    return b"".join(parts)


def _flexible_body(
    version: int, limits: FetchLimits, topics: Mapping[TopicKey, Sequence[Position]]
) -> bytes:
    parts = [_front(version, limits), uvarint(len(topics) + 1)]
    for topic, positions in topics.items():
        key = compact_topic(topic, "Fetch", by_id=version >= FIRST_BY_ID)
        parts += key, uvarint(len(positions) + 1)
        parts += [
            _FLEXIBLE_POSITION.pack(
                p.partition,
                p.leader_epoch,
                p.offset,
                p.last_fetched_epoch,
                _NOT_A_FOLLOWER,
                p.max_bytes,
            )
            for p in positions
        ]
        parts.append(NO_TAGS)
    forgotten = _by_topic(limits.forgotten)
    parts.append(uvarint(len(forgotten) + 1))
    for topic, places in forgotten.items():
        key = compact_topic(topic, "Fetch", by_id=version >= FIRST_BY_ID)
        parts += key, uvarint(len(places) + 1)
        parts += [INT32.pack(place) for place in places]
        parts.append(NO_TAGS)
    parts += compact_string(limits.rack), NO_TAGS
    return b"".join(parts)


def _by_topic(places: Iterable[Place]) -> dict[TopicKey, list[int]]:
    topics: dict[TopicKey, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    return topics


def _read(version: int, frame: Frame, at: int) -> FetchAnswer:
    view = frame.view
    throttle_time_ms, error, session_id = _ANSWER.unpack_from(view, at)
    topics, at = read_count(view, at + _ANSWER.size)
    partitions = []
    for _ in range(topics):
        topic, at = read_string(view, at)
        count, at = read_count(view, at)
        for _ in range(count):
            partition, at = _read_partition(version, topic or "", view, at)
            partitions.append(partition)
    return FetchAnswer(
        throttle_time_ms=throttle_time_ms,
        error=error,
        partitions=partitions,
        endpoints=(),
        frame=frame,
        session_id=session_id,
    )


def _read_partition(
    version: int, topic: str, view: memoryview, at: int
) -> tuple[FetchedPartition, int]:
    index, error, high_watermark, stable, start = _PARTITION.unpack_from(view, at)
    count, at = read_count(view, at + _PARTITION.size)
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
    records = piece(view, at + INT32.size, max(size, 0))
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


def _read_flexible(version: int, frame: Frame, at: int) -> FetchAnswer:
    view = frame.view
    throttle_time_ms, error, session_id = _ANSWER.unpack_from(view, at)
    topics, at = read_compact_count(view, at + _ANSWER.size)
    partitions = []
    for _ in range(topics):
        topic, at = read_compact_topic(view, at, by_id=version >= FIRST_BY_ID)
        count, at = read_compact_count(view, at)
        for _ in range(count):
            partition, at = _read_flexible_partition(topic, view, at)
            partitions.append(partition)
        _, at = read_tags(view, at)
    tags, at = read_tags(view, at)
    return FetchAnswer(
        throttle_time_ms=throttle_time_ms,
        error=error,
        partitions=partitions,
        endpoints=read_endpoints(tags.get(_ENDPOINTS_TAG)),
        frame=frame,
        session_id=session_id,
    )


def _read_flexible_partition(
    topic: TopicKey, view: memoryview, at: int
) -> tuple[FetchedPartition, int]:
    index, error, high_watermark, stable, start = _PARTITION.unpack_from(view, at)
    count, at = read_compact_count(view, at + _PARTITION.size)
    aborted = []
    for _ in range(count):
        producer_id, first_offset = _ABORTED.unpack_from(view, at)
        aborted.append(AbortedTransaction(first_offset, producer_id))
        _, at = read_tags(view, at + _ABORTED.size)
    (preferred,) = INT32.unpack_from(view, at)
    size, at = read_uvarint(view, at + INT32.size)
    records = piece(view, at, max(size - 1, 0))
    tags, at = read_tags(view, at + len(records))
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
        read_leader(tags.get(_LEADER_TAG)),
    )
    return partition, at


def _read_epoch_end(tag: memoryview | None) -> EpochEnd | None:
    return None if tag is None else EpochEnd(*_EPOCH_END.unpack_from(tag, 0))
