"""Batches for many partitions, without an event loop: one Produce request per leader at a time.

    round     broker 1: the next batch of partitions 0, 2, 4    broker 2: that of 1, 3
              all leaders work at the same time; each acknowledged batch makes room for the next one
    failure   a partition whose batch failed waits until the others are done, then it is tried again

Invariant: a batch is sent when the one before it in its partition is acknowledged, so the records
of a partition keep their order. Without a producer id a retry may append a batch twice: that is for
keyed records of compacted topics. Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from sparkmirror.backoff import Backoff, seconds_left
from sparkmirror.errors import ClusterError, ClusterUnavailable, TopicMissing
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import BytesLike
from sparkmirror.wire.batch.message_format_v1 import NO_TIMESTAMP
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S
from sparkmirror.wire.net.routing import LeaderOf, Router
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.produce import (
    OutgoingBatch,
    ProduceResponseData,
    produce_request,
    produce_version,
)
from sparkmirror.wire.protocol.request import ClientRequest
from sparkmirror.wire.protocol.synchronous.idempotent_producer import IdempotentProducer
from sparkmirror.wire.protocol.synchronous.synchronous_produce import (
    APPEND_TIMEOUT_S,
    PRODUCE_TIMEOUT_MS,
    RESPONSE_TIMEOUT_S,
    batch_buffers,
)

MAX_REQUEST_BYTES = 900_000
"""The batches of one request: Event Hubs refuses a request of more than a million bytes."""
_TOO_LARGE_CODES = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def append_to_partitions(
    router: Router,
    batches: Mapping[TopicPartition, Iterable[Sequence[Record]]],
    *,
    producer: IdempotentProducer | None = None,
    timeout_s: float = APPEND_TIMEOUT_S,
) -> None:
    """Append the batches of each partition in order. Returns when the brokers have all of them.

    A batch gets `timeout_s`. Batches of other partitions may be appended when this raises. With a
    producer, a batch is appended once, and one that is too large for the topic is divided. Without
    one, a batch whose timestamps a broker refuses because clocks differ is sent without timestamps.
    """
    ready = {
        partition: _PartitionAppend(partition, all_, producer)
        for partition, all_ in batches.items()
    }
    backoff = Backoff()
    while ready:
        failed: dict[TopicPartition, _PartitionAppend] = {}
        while ready := {p: one for p, one in ready.items() if one.has_more and p not in failed}:
            deadline = router.deadline_after(timeout_s)
            errors = _append_once(router, ready, deadline)
            for partition, error in errors.items():
                one = failed[partition] = ready[partition]
                one.deadline = one.deadline or deadline
                if not one.is_retriable(error) or time.monotonic() > one.deadline:
                    raise error
                router.invalidate(LeaderOf(partition))
            for error in {id(error): error for error in errors.values()}.values():
                router.on_retry(error)
        if failed:
            router.pause(backoff.next_delay_s())
        ready = failed


class _PartitionAppend:
    """The batches of one partition that are not acknowledged yet."""

    def __init__(
        self,
        partition: TopicPartition,
        batches: Iterable[Sequence[Record]],
        producer: IdempotentProducer | None,
    ) -> None:
        self.partition = partition
        self._producer = producer
        self.deadline: float | None = None
        """When the first batch must be appended; None if it has not failed yet."""
        self._batches = deque(batches)
        self._buffers: Sequence[BytesLike] = ()
        self._has_timestamps = True
        self._new_until: float | None = None

    @property
    def has_more(self) -> bool:
        """Whether a batch is not acknowledged yet."""
        return bool(self._batches)

    def buffers(self) -> Sequence[BytesLike]:
        """Return the first batch, ready for Produce."""
        if not self._buffers:
            records = self._batches[0]
            if not self._has_timestamps:
                records = [record._replace(timestamp=NO_TIMESTAMP) for record in records]
            self._buffers = (
                batch_buffers(records)
                if self._producer is None
                else self._producer.batch_buffers(self.partition, records)
            )
        return self._buffers

    def on_acknowledged(self) -> None:
        """Go on with the next batch."""
        records = self._batches.popleft()
        if self._producer is not None:
            self._producer.on_acknowledged(self.partition, len(records))
        self._buffers, self.deadline = (), None

    def is_retriable(self, error: ClusterError) -> bool:
        """Whether the first batch may be sent again. A producer's topic may be a new one."""
        if self._producer is not None and isinstance(error, TopicMissing):
            self._new_until = self._new_until or time.monotonic() + NEW_TOPIC_WAIT_S
            return time.monotonic() < self._new_until
        return error.retriable

    def accept_code(self, code: ErrorCode) -> bool:
        """Apply a code after which the appending goes on at once; return False for others."""
        if code is ErrorCode.NONE:
            self.on_acknowledged()
            return True
        if self._producer is None:
            return code is ErrorCode.INVALID_TIMESTAMP and self._drop_timestamps()
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self.on_acknowledged()
            return True
        return code in _TOO_LARGE_CODES and self._divide()

    def _drop_timestamps(self) -> bool:
        """Send the batches without timestamps from now on. Returns False if that was so before."""
        had_timestamps, self._has_timestamps, self._buffers = self._has_timestamps, False, ()
        return had_timestamps

    def _divide(self) -> bool:
        """Make two batches of the first one. Returns False if it has one record."""
        records = self._batches[0]
        middle = len(records) // 2
        if not middle:
            return False
        self._batches[0] = records[middle:]
        self._batches.appendleft(records[:middle])
        self._buffers = ()
        return True


def _append_once(
    router: Router, ready: Mapping[TopicPartition, _PartitionAppend], deadline: float
) -> dict[TopicPartition, ClusterError]:
    """Send the first batch of partitions, as many as fit. Returns the errors by partition."""
    groups, errors = _group_by_leader(router, ready, deadline)
    sent = {address: _fitting(group) for address, group in groups.items()}
    requests = {address: partial(_build_request, group) for address, group in sent.items()}
    answers = router.connections.request_all(requests, deadline, attempt_s=RESPONSE_TIMEOUT_S)
    for address, answer in answers.items():
        for one in sent[address]:
            error = (
                answer if isinstance(answer, ClusterError) else _read_result(router, one, answer)
            )
            if error is not None:
                errors[one.partition] = error
    return errors


def _group_by_leader(
    router: Router, ready: Mapping[TopicPartition, _PartitionAppend], deadline: float
) -> tuple[dict[Address, list[_PartitionAppend]], dict[TopicPartition, ClusterError]]:
    """Group partitions by the address of their leader; the others have an error."""
    unknown = {p.topic for p in ready if router.metadata.leader_node(p) is None}
    failure: ClusterError | None = None
    if unknown:
        try:
            router.refresh(unknown, timeout_s=seconds_left(deadline))
        except ClusterError as error:
            failure = error
    groups: dict[Address, list[_PartitionAppend]] = {}
    errors: dict[TopicPartition, ClusterError] = {}
    for partition, one in ready.items():
        broker = router.metadata.leader_node(partition)
        if broker is not None:
            groups.setdefault(broker.address, []).append(one)
        else:
            errors[partition] = failure or ClusterUnavailable(
                router.cluster, f"{partition} has no leader; check whether all brokers are up"
            )
    return groups, errors


def _fitting(group: Sequence[_PartitionAppend]) -> list[_PartitionAppend]:
    """Return the partitions whose first batches fit into one request, at least one."""
    fitting: list[_PartitionAppend] = []
    size = 0
    for one in group:
        size += sum(map(len, one.buffers()))
        if fitting and size > MAX_REQUEST_BYTES:
            break
        fitting.append(one)
    return fitting


def _build_request(
    group: Sequence[_PartitionAppend], connection: BrokerConnection
) -> ClientRequest[ProduceResponseData]:
    return produce_request(
        produce_version(connection.api_versions, by_id=False),
        [OutgoingBatch(p.partition.topic, p.partition.partition, p.buffers()) for p in group],
        timeout_ms=PRODUCE_TIMEOUT_MS,
    )


def _read_result(
    router: Router, one: _PartitionAppend, answer: ProduceResponseData
) -> ClusterError | None:
    """Apply the result of a partition's batch; return its error, None if there is none."""
    result = answer.partition_responses.get((one.partition.topic, one.partition.partition))
    code = ErrorCode.NETWORK_EXCEPTION if result is None else ErrorCode(result.error_code)
    if one.accept_code(code):
        return None
    return error_for_code(router.cluster, "Produce", code, str(one.partition))
