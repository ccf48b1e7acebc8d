"""Looking into a log without a loop: one fetch, and what it brought as bytes of its own.

For whoever has no loop: to read a small topic, to see what lies at the end of the target's log,
and to walk over a stretch of either log. Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.aborted import AbortedTransaction
from sparkmirror.wire.backoff import Backoff
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.fetch import (
    FetchAnswer,
    FetchLimits,
    Position,
    fetch_request,
    fetch_version,
)
from sparkmirror.wire.header import Header, batches, read_header
from sparkmirror.wire.offsets import LATEST, list_offsets
from sparkmirror.wire.routing import LeaderOf, Router

GLANCE_BYTES = 1
"""The smallest fetch: it still brings the first batch whole."""
WALK_BYTES = 8 << 20
WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    """What one fetch brought: the bytes, and where the log stands."""

    records: bytes
    aborted: tuple[AbortedTransaction, ...]
    high_watermark: int
    last_stable_offset: int
    log_start: int


class OutOfRange(ClusterError):
    """The log does not hold the offset asked for."""


def look(
    router: Router,
    partition: TopicPartition,
    offset: int,
    *,
    max_bytes: int = WALK_BYTES,
    read_committed: bool = False,
) -> Glimpse:
    """Fetch what lies at an offset, trying again while brokers move."""
    backoff, deadline = Backoff(), time.monotonic() + WITHIN_S
    while True:
        try:
            glimpse, code = _look_once(router, partition, offset, max_bytes, read_committed)
        except ClusterError as error:
            if not error.retriable:
                raise
            code, glimpse = Code.NETWORK_EXCEPTION, None
        if glimpse is not None:
            return glimpse
        if code is Code.OFFSET_OUT_OF_RANGE:
            raise OutOfRange(router.client.cluster, f"{partition} does not hold offset {offset}")
        if not code.is_worth_retrying or time.monotonic() > deadline:
            break
        router.forget(LeaderOf(partition))
        time.sleep(backoff.pause_s())
    demand(router, partition, code)
    raise ClusterUnavailable(router.client.cluster, f"{partition} cannot be read: {code}")


def batch_at(router: Router, partition: TopicPartition, offset: int) -> tuple[Header, bytes]:
    """The whole batch that holds an offset."""
    glimpse = look(router, partition, offset, max_bytes=GLANCE_BYTES)
    for header, batch in whole_batches(glimpse.records):
        if header.next_offset > offset:
            return header, batch
    raise OutOfRange(router.client.cluster, f"{partition} holds nothing at offset {offset}")


def whole_batches(records: bytes) -> Iterator[tuple[Header, bytes]]:
    """The complete batches of the present format in what a fetch brought."""
    for span in batches(records):
        batch = records[span.start : span.end]
        yield read_header(batch), batch


def _look_once(
    router: Router, partition: TopicPartition, offset: int, max_bytes: int, read_committed: bool
) -> tuple[Glimpse | None, Code]:
    connection = router.connection_to(LeaderOf(partition), timeout_s=WITHIN_S)
    request = fetch_request(
        fetch_version(connection.versions, by_id=False),
        FetchLimits(max_wait_ms=0, max_bytes=max(max_bytes, 1), read_committed=read_committed),
        [Position(partition.topic, partition.partition, offset, max_bytes)],
    )
    seen: list[tuple[Glimpse | None, Code]] = []

    def heard(answer: FetchAnswer) -> None:
        code = Code(answer.error)
        if code is not Code.NONE or not answer.partitions:
            seen.append((None, code))
            return
        (there,) = answer.partitions
        glimpse = Glimpse(
            records=bytes(there.records),
            aborted=tuple(there.aborted),
            high_watermark=there.high_watermark,
            last_stable_offset=there.last_stable_offset,
            log_start=there.log_start_offset,
        )
        seen.append((glimpse if there.error == 0 else None, Code(there.error)))

    connection.send(request, then=heard, deadline=time.monotonic() + WITHIN_S)
    while not seen:
        connection.wait()
    return seen[0]


def high_watermark(router: Router, partition: TopicPartition) -> int:
    """The end of what consumers of a partition see."""
    outcome = list_offsets(router, {partition: LATEST})[partition]
    demand(router, partition, outcome.code)
    assert outcome.value is not None
    return outcome.value.offset


def demand(router: Router, partition: TopicPartition, code: Code) -> None:
    """Raise unless a partition was answered for."""
    if code is Code.NONE:
        return
    cluster = router.client.cluster
    if code.action is Action.NOT_AUTHORIZED:
        raise NotAuthorized(cluster, f"{partition}: {code}; grant Read on the topic")
    raise ClusterUnavailable(cluster, f"{partition}: {code}")
