"""One fetch at a time, without an event loop; the records are copied out of the frame.

For small topics, for the end of the target's log, and for a range of either log. Blocks; belongs to
the thread of its router.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.batch.header import BatchHeader, iter_batches, read_header
from sparkmirror.wire.net.routing import LeaderOf, Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.fetch import (
    FetchParams,
    FetchPosition,
    FetchResponseData,
    fetch_request,
    fetch_version,
)
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets

ONE_BATCH_BYTES = 1
"""The smallest limit: a broker still sends the first batch whole."""
FETCH_BYTES = 8 << 20
FETCH_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleFetchResult:
    """The record batches of one fetch, and the offsets of the log."""

    records: bytes
    aborted_transactions: tuple[AbortedTransaction, ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class OffsetOutOfRange(ClusterError):
    """The log does not have the requested offset."""


def fetch_records(
    router: Router,
    partition: TopicPartition,
    offset: int,
    *,
    max_bytes: int = FETCH_BYTES,
    read_committed: bool = False,
) -> SingleFetchResult:
    """Fetch at an offset; retry while the error is retriable. Raises OffsetOutOfRange."""
    backoff, deadline = Backoff(), time.monotonic() + FETCH_TIMEOUT_S
    while True:
        try:
            result, code = _fetch_once(router, partition, offset, max_bytes, read_committed)
        except ClusterError as error:
            if not error.retriable:
                raise
            router.on_retry(error)
            code, result = ErrorCode.NETWORK_EXCEPTION, None
        if result is not None:
            return result
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRange(
                router.client.cluster, f"{partition} does not hold offset {offset}"
            )
        if not code.is_retriable or time.monotonic() > deadline:
            break
        router.invalidate(LeaderOf(partition))
        router.pause(backoff.next_delay_s())
    raise_for_code(router, partition, code)
    raise ClusterUnavailable(router.client.cluster, f"{partition} cannot be read: {code}")


def fetch_batch_at(
    router: Router, partition: TopicPartition, offset: int
) -> tuple[BatchHeader, bytes]:
    """Return the batch that has an offset. Raises OffsetOutOfRange."""
    result = fetch_records(router, partition, offset, max_bytes=ONE_BATCH_BYTES)
    for header, batch in iter_complete_batches(result.records):
        if header.next_offset > offset:
            return header, batch
    raise OffsetOutOfRange(router.client.cluster, f"{partition} holds nothing at offset {offset}")


def iter_complete_batches(records: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield the complete batches of fetched records. They must have magic 2."""
    for span in iter_batches(records):
        batch = records[span.start : span.end]
        yield read_header(batch), batch


def _fetch_once(
    router: Router, partition: TopicPartition, offset: int, max_bytes: int, read_committed: bool
) -> tuple[SingleFetchResult | None, ErrorCode]:
    connection = router.connection_to(LeaderOf(partition), timeout_s=FETCH_TIMEOUT_S)
    request = fetch_request(
        fetch_version(connection.api_versions, by_id=False),
        FetchParams(max_wait_ms=0, max_bytes=max(max_bytes, 1), read_committed=read_committed),
        [FetchPosition(partition.topic, partition.partition, offset, max_bytes)],
    )
    results: list[tuple[SingleFetchResult | None, ErrorCode]] = []

    def on_response(answer: FetchResponseData) -> None:
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE or not answer.partitions:
            results.append((None, code))
            return
        (fetched,) = answer.partitions
        result = SingleFetchResult(
            records=bytes(fetched.records),
            aborted_transactions=tuple(fetched.aborted_transactions),
            high_watermark=fetched.high_watermark,
            last_stable_offset=fetched.last_stable_offset,
            log_start_offset=fetched.log_start_offset,
        )
        results.append((result if fetched.error_code == 0 else None, ErrorCode(fetched.error_code)))

    connection.send(request, on_response=on_response, deadline=time.monotonic() + FETCH_TIMEOUT_S)
    while not results:
        connection.poll()
    return results[0]


def high_watermark(router: Router, partition: TopicPartition) -> int:
    """Return the high watermark of a partition."""
    outcome = list_offsets(router, {partition: LATEST})[partition]
    raise_for_code(router, partition, outcome.code)
    assert outcome.value is not None
    return outcome.value.offset


def raise_for_code(router: Router, partition: TopicPartition, code: ErrorCode) -> None:
    """Raise NotAuthorized or ClusterUnavailable for an error code of a partition."""
    if code is ErrorCode.NONE:
        return
    cluster = router.client.cluster
    if code.action is ErrorAction.NOT_AUTHORIZED:
        raise NotAuthorized(cluster, f"{partition}: {code}; grant Read on the topic")
    raise ClusterUnavailable(cluster, f"{partition}: {code}")
