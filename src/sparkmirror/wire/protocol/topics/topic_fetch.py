"""One Fetch of many partitions of a topic. The response has copies of the records.

`wire` decodes views into buffers that it uses again; topics that are read in this way are small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.wire.net.buffer_pool import ResponseFrame
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import FetchParams, FetchPosition, fetch_request, fetch_version
from sparkmirror.wire.protocol.request import ClientRequest

MAX_PARTITION_BYTES = 1 << 20
MAX_RESPONSE_BYTES = 8 << 20


class PartitionRecords(NamedTuple):
    """The response of a broker for one partition."""

    partition: int
    error_code: ErrorCode
    records: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFetchResponse:
    """The response of a broker. The connection reads `throttle_time_ms`."""

    throttle_time_ms: int
    error_code: ErrorCode
    partitions: tuple[PartitionRecords, ...]


def topic_fetch_request(
    topic: str, offsets: Mapping[int, int], wait_ms: int, connection: BrokerConnection
) -> ClientRequest[TopicFetchResponse]:
    """Build a Fetch at these offsets. The broker waits up to `wait_ms` for the first record."""
    fetch = fetch_request(
        fetch_version(connection.api_versions, by_id=False),
        FetchParams(max_wait_ms=wait_ms, max_bytes=MAX_RESPONSE_BYTES),
        [FetchPosition(topic, number, at, MAX_PARTITION_BYTES) for number, at in offsets.items()],
    )

    def decode(frame: ResponseFrame, at: int) -> TopicFetchResponse:
        response = fetch.decode(frame, at)
        return TopicFetchResponse(
            throttle_time_ms=response.throttle_time_ms,
            error_code=ErrorCode(response.error_code),
            partitions=tuple(
                PartitionRecords(found.partition, ErrorCode(found.error_code), bytes(found.records))
                for found in response.partitions
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
