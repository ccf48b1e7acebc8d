"""Offsets of partitions: first, high watermark, by timestamp, and the ends of leader epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.leader_calls import ApiResult, LeaderCall, call_leaders
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, Router
from sparkmirror.wire.protocol.apis import LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from sparkmirror.wire.protocol.fetch import EpochEndOffset
from sparkmirror.wire.protocol.kafka_python_messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sparkmirror.wire.protocol.topics.current_leader import NO_LEADER_EPOCH
from sparkmirror.wire.protocol.topics.topic_key import group_by_topic

LATEST = -1
"""The high watermark, or with read_committed the last stable offset. Not the end of the log, which
may have records that are not replicated yet."""
EARLIEST = -2

_CONSUMER_REPLICA_ID = -1
_OffsetsTopic = ListOffsetsRequest.ListOffsetsTopic
_EpochTopic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


class ListedOffset(NamedTuple):
    """An offset. For a timestamp: the first record at or after it, -1 if there is none."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class LeaderEpochQuery(NamedTuple):
    """An epoch whose end is requested. `leader_epoch` is the expected epoch of the leader."""

    epoch: int
    leader_epoch: int = NO_LEADER_EPOCH


def list_offsets(
    router: Router,
    times: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[TopicPartition, ApiResult[ListedOffset]]:
    """Return offsets for LATEST, EARLIEST or a timestamp in milliseconds, by partition."""

    def build_message(partitions: Sequence[TopicPartition]) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            isolation_level=int(read_committed),
            topics=[
                _OffsetsTopic(
                    name=topic,
                    partitions=[
                        _OffsetsTopic.ListOffsetsPartition(
                            partition_index=p.partition,
                            current_leader_epoch=NO_LEADER_EPOCH,
                            timestamp=times[p],
                        )
                        for p in group
                    ],
                )
                for topic, group in group_by_topic(partitions)
            ],
        )

    call = LeaderCall(api=LIST_OFFSETS, build_message=build_message, parse_response=_read_offsets)
    return call_leaders(router, call, times, timeout_s=timeout_s)


def _read_offsets(
    answer: ListOffsetsResponse,
) -> Iterator[tuple[TopicPartition, int, ListedOffset]]:
    for topic in answer.topics:
        for p in topic.partitions:
            found = ListedOffset(p.offset, p.timestamp, p.leader_epoch)
            yield TopicPartition(topic.name, p.partition_index), p.error_code, found


def offset_for_leader_epoch(
    router: Router,
    queries: Mapping[TopicPartition, LeaderEpochQuery],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[TopicPartition, ApiResult[EpochEndOffset]]:
    """Return where epochs end. Records read of an epoch beyond its end are truncated."""

    def build_message(partitions: Sequence[TopicPartition]) -> OffsetForLeaderEpochRequest:
        return OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            topics=[
                _EpochTopic(
                    topic=topic,
                    partitions=[
                        _EpochTopic.OffsetForLeaderPartition(
                            partition=p.partition,
                            current_leader_epoch=queries[p].leader_epoch,
                            leader_epoch=queries[p].epoch,
                        )
                        for p in group
                    ],
                )
                for topic, group in group_by_topic(partitions)
            ],
        )

    call = LeaderCall(
        api=OFFSET_FOR_LEADER_EPOCH, build_message=build_message, parse_response=_read_epoch_ends
    )
    return call_leaders(router, call, queries, timeout_s=timeout_s)


def _read_epoch_ends(
    answer: OffsetForLeaderEpochResponse,
) -> Iterator[tuple[TopicPartition, int, EpochEndOffset]]:
    for topic in answer.topics:
        for p in topic.partitions:
            end = EpochEndOffset(p.leader_epoch, p.end_offset)
            yield TopicPartition(topic.topic, p.partition), p.error_code, end
