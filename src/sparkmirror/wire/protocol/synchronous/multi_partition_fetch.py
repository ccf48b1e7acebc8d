"""One fetch of many partitions, without an event loop; the records are copied out of the frames.

A broker sends the first batch of a response whole, and cuts those of other partitions at the limit
of bytes. A partition without a complete batch is fetched again: together with the others as long as
that brings something, at last alone.

Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.errors import ClusterError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import iter_batches
from sparkmirror.wire.net.buffer_pool import ResponseFrame
from sparkmirror.wire.net.leader_calls import call_leaders
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import (
    FetchedPartition,
    FetchParams,
    FetchPosition,
    FetchResponseData,
    fetch_request,
    fetch_version,
)
from sparkmirror.wire.protocol.request import ClientRequest
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import SingleFetchResult, fetch_records

RESPONSE_BYTES = 16 << 20
"""The limit of one response; further partitions are in the next one."""


def fetch_partitions(
    router: Router,
    offsets: Mapping[TopicPartition, int],
    *,
    partition_bytes: int,
    read_committed: bool = False,
    timeout_s: float,
) -> dict[TopicPartition, SingleFetchResult | ErrorCode]:
    """Fetch each partition once at its offset. Each has a result or an error code.

    A result without records means that the log has none from the offset on. Raises ClusterError if
    a partition that is fetched alone fails.
    """
    results: dict[TopicPartition, SingleFetchResult | ErrorCode] = {}
    waiting = dict(offsets)
    while waiting:
        call = _FetchCall(waiting, partition_bytes, read_committed)
        fetched = call_leaders(router, call, waiting, timeout_s=timeout_s)
        complete = {
            partition: outcome.code if outcome.value is None else outcome.value
            for partition, outcome in fetched.items()
            if outcome.value is None or has_complete_batch(outcome.value.records)
        }
        results |= complete
        waiting = {p: offset for p, offset in waiting.items() if p not in complete}
        if not complete:
            break
    for partition, offset in waiting.items():
        try:
            results[partition] = fetch_records(
                router, partition, offset, max_bytes=partition_bytes, read_committed=read_committed
            )
        except ClusterError as error:
            if not error.retriable:
                raise
            results[partition] = ErrorCode.NETWORK_EXCEPTION
    return results


def has_complete_batch(records: bytes) -> bool:
    """Whether fetched records begin with a whole batch."""
    return next(iter_batches(records), None) is not None


@dataclass(frozen=True, slots=True)
class _FetchCall:
    """A fetch of many partitions of one leader."""

    offsets: Mapping[TopicPartition, int]
    partition_bytes: int
    read_committed: bool

    def build_request(
        self, partitions: Sequence[TopicPartition], versions: NodeApiVersions
    ) -> ClientRequest[list[tuple[TopicPartition, int, SingleFetchResult]]]:
        """Build the request for one leader."""
        request = fetch_request(
            fetch_version(versions, by_id=False),
            FetchParams(
                max_wait_ms=0, max_bytes=RESPONSE_BYTES, read_committed=self.read_committed
            ),
            [
                FetchPosition(p.topic, p.partition, self.offsets[p], self.partition_bytes)
                for p in partitions
            ],
        )

        def decode(
            frame: ResponseFrame, at: int
        ) -> list[tuple[TopicPartition, int, SingleFetchResult]]:
            return list(_copied_results(request.decode(frame, at)))

        return ClientRequest(
            name=request.name,
            api_key=request.api_key,
            version=request.version,
            flexible=request.flexible,
            body=request.body,
            decode=decode,
        )

    def read_response(
        self, response: list[tuple[TopicPartition, int, SingleFetchResult]]
    ) -> list[tuple[TopicPartition, int, SingleFetchResult]]:
        """Return the error code and the records of each partition."""
        return response


def _copied_results(
    response: FetchResponseData,
) -> Iterator[tuple[TopicPartition, int, SingleFetchResult]]:
    for fetched in response.partitions:
        code = fetched.error_code or response.error_code
        yield TopicPartition(str(fetched.topic), fetched.partition), code, _copied(fetched)


def _copied(fetched: FetchedPartition) -> SingleFetchResult:
    return SingleFetchResult(
        records=bytes(fetched.records),
        aborted_transactions=tuple(fetched.aborted_transactions),
        high_watermark=fetched.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        log_start_offset=fetched.log_start_offset,
    )
