"""Appending to a topic without a loop: one batch at a time, acknowledged, or an error.

For records that are keyed and compacted, so that one appended twice does no harm: tried again,
without a producer id, until a leader takes it. Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sparkmirror.errors import ClusterError, RequestRefused
from sparkmirror.model import TopicPartition
from sparkmirror.wire.backoff import Backoff
from sparkmirror.wire.codes import Code
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import NO_SEQUENCE, Data, read_header
from sparkmirror.wire.legacy import NO_TIMESTAMP
from sparkmirror.wire.place import refusal
from sparkmirror.wire.produce import OutgoingBatch, produce_request, produce_version
from sparkmirror.wire.records import Record, build
from sparkmirror.wire.routing import LeaderOf, Router

WITHIN_S = 30.0
TIMEOUT_MS = 10_000


def append(router: Router, partition: TopicPartition, records: Sequence[Record]) -> int:
    """Append records as one batch; return the offset of the first. Their offsets are ignored.

    A broker whose clock is far from ours refuses our time, but takes records without one.
    """
    try:
        return _append(router, partition, records)
    except RequestRefused as error:
        if error.code != Code.INVALID_TIMESTAMP:
            raise
    return _append(router, partition, [r._replace(timestamp=NO_TIMESTAMP) for r in records])


def _append(router: Router, partition: TopicPartition, records: Sequence[Record]) -> int:
    batch = memoryview(build([r._replace(offset=n) for n, r in enumerate(records)]))
    return append_batch(
        router, partition, forward(read_header(batch), batch, Producer(), NO_SEQUENCE)
    )


def append_batch(
    router: Router,
    partition: TopicPartition,
    buffers: Sequence[Data],
    *,
    transactional_id: str | None = None,
    joins: bool = True,
) -> int:
    """Append a batch that is ready for Produce; return the offset of its first record.

    Tried again while that may help, so a batch without a producer id may be appended twice.
    `joins` is false for a transaction whose partitions are added one by one.
    """
    deadline, backoff = time.monotonic() + WITHIN_S, Backoff()
    outgoing = OutgoingBatch(partition.topic, partition.partition, buffers)
    while True:
        error: ClusterError
        try:
            connection = router.connection_to(LeaderOf(partition), timeout_s=WITHIN_S)
            version = produce_version(connection.versions, by_id=False, joins=joins)
            request = produce_request(
                version, [outgoing], timeout_ms=TIMEOUT_MS, transactional_id=transactional_id
            )
            answer = connection.wait_for(request, TIMEOUT_MS / 1000 + 5)
            (said,) = answer.acknowledgements.values()
            if said.error == 0:
                return said.base_offset
            error = refusal(router.client.cluster, "Produce", Code(said.error), str(partition))
        except ClusterError as lost:
            error = lost
        if not error.retriable or time.monotonic() > deadline:
            raise error
        router.forget(LeaderOf(partition))
        time.sleep(backoff.pause_s())
