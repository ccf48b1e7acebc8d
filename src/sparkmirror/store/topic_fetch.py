"""One fetch for many partitions of a topic, answered with bytes of our own.

The answers of the wire room are views into memory that is used again; stores are small, so here
they are copied out while the answer is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.wire.net.buffers import ResponseFrame
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import FetchParams, FetchPosition, fetch_request, fetch_version
from sparkmirror.wire.protocol.request import ClientRequest

MAX_PARTITION_BYTES = 1 << 20
MAX_RESPONSE_BYTES = 8 << 20


class PartitionRecords(NamedTuple):
    """What a broker answered for one partition."""

    partition: int
    error_code: ErrorCode
    records: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFetchResponse:
    """What a broker answered. `throttle_time_ms` is read by the connection."""

    throttle_time_ms: int
    error_code: ErrorCode
    partitions: tuple[PartitionRecords, ...]


def topic_fetch_request(
    topic: str, offsets: Mapping[int, int], wait_ms: int, connection: BrokerConnection
) -> ClientRequest[TopicFetchResponse]:
    """Ask for what lies at these offsets; the broker waits a while if there is nothing."""
    fetch = fetch_request(
        fetch_version(connection.api_versions, by_id=False),
        FetchParams(max_wait_ms=wait_ms, max_bytes=MAX_RESPONSE_BYTES),
        [FetchPosition(topic, number, at, MAX_PARTITION_BYTES) for number, at in offsets.items()],
    )

    def decode(frame: ResponseFrame, at: int) -> TopicFetchResponse:
        answer = fetch.decode(frame, at)
        return TopicFetchResponse(
            throttle_time_ms=answer.throttle_time_ms,
            error_code=ErrorCode(answer.error_code),
            partitions=tuple(
                PartitionRecords(found.partition, ErrorCode(found.error_code), bytes(found.records))
                for found in answer.partitions
            ),
        )

    return ClientRequest(
        name=fetch.name,
        api_key=fetch.api_key,
        version=fetch.version,
        flexible=fetch.flexible,
        body=fetch.body,
        decode=decode,
    )
