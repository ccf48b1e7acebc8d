"""One acknowledged batch at a time, without an event loop.

`append_records` uses no producer id, so a retry may append a batch twice: it is for keyed records
of compacted topics. Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sparkmirror.backoff import Backoff, seconds_left
from sparkmirror.errors import ClusterError, RequestRefused
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_SEQUENCE, BytesLike, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.message_format_v1 import NO_TIMESTAMP
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.net.routing import LeaderOf, Router
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.produce import OutgoingBatch, produce_request, produce_version

APPEND_TIMEOUT_S = 30.0
MIN_WAIT_S = 0.5
PRODUCE_TIMEOUT_MS = 10_000
RESPONSE_TIMEOUT_S = PRODUCE_TIMEOUT_MS / 1000 + 5
"""How long a broker may take to respond: longer than it may wait for its replicas."""


def append_records(router: Router, partition: TopicPartition, records: Sequence[Record]) -> int:
    """Append records as one batch; return the offset of the first. Their offsets are ignored.

    If the broker refuses the timestamps because clocks differ, they are sent without timestamps.
    """
    try:
        return _append_once(router, partition, records)
    except RequestRefused as error:
        if error.code != ErrorCode.INVALID_TIMESTAMP:
            raise
    return _append_once(router, partition, [r._replace(timestamp=NO_TIMESTAMP) for r in records])


def _append_once(router: Router, partition: TopicPartition, records: Sequence[Record]) -> int:
    return append_batch(router, partition, batch_buffers(records))


def batch_buffers(records: Sequence[Record]) -> Sequence[BytesLike]:
    """Return records as one batch without a producer id, ready for Produce."""
    batch = memoryview(build_batch([r._replace(offset=n) for n, r in enumerate(records)]))
    return forward_batch(read_header(batch), batch, BatchProducer(), NO_SEQUENCE)


def append_batch(
    router: Router,
    partition: TopicPartition,
    buffers: Sequence[BytesLike],
    *,
    transactional_id: str | None = None,
    implicit_add: bool = True,
    timeout_s: float = APPEND_TIMEOUT_S,
) -> int:
    """Append a batch that is ready for Produce; return the offset of its first record.

    Retriable errors are retried, so a batch without a producer id may be appended twice.
    `implicit_add` is false for a transaction whose partitions are added one by one.
    """
    deadline, backoff = router.deadline_after(timeout_s), Backoff()
    outgoing = OutgoingBatch(partition.topic, partition.partition, buffers)
    while True:
        error: ClusterError
        try:
            connection = router.connection_to(LeaderOf(partition), timeout_s=timeout_s)
            version = produce_version(
                connection.api_versions, by_id=False, implicit_add=implicit_add
            )
            request = produce_request(
                version,
                [outgoing],
                timeout_ms=PRODUCE_TIMEOUT_MS,
                transactional_id=transactional_id,
            )
            wait_s = min(RESPONSE_TIMEOUT_S, seconds_left(deadline, MIN_WAIT_S))
            answer = connection.send_and_wait(request, wait_s)
            (result,) = answer.partition_responses.values()
            if result.error_code == 0:
                return result.base_offset
            error = error_for_code(
                router.client.cluster, "Produce", ErrorCode(result.error_code), str(partition)
            )
        except ClusterError as failure:
            error = failure
        if not error.retriable or time.monotonic() > deadline:
            raise error
        router.on_retry(error)
        router.invalidate(LeaderOf(partition))
        router.pause(backoff.next_delay_s())
