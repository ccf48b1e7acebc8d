"""Sends the batches of a task to the target brokers and handles the responses.

One connection per target broker and several requests in flight on it. A request has one batch of
each partition that has one ready, as far as max.request.size allows. The response must name the
expected target offset of the batch. Any other offset means that another program writes to the
partition, and the lease ends.

A batch that was sent and not acknowledged is sent again unchanged. The broker recognises it by its
sequence, and `resend_checks` asks the broker first whether it still knows the producer. If the
data is so old that the broker may have forgotten the producer, the lease ends and the driver
compares both logs. A lease without a producer id ends then, too. In a transaction no data is too
old, because a broker remembers the producer of an open transaction. An error that a resend cannot
repair fails the transaction.

`error_reactions` decides about error codes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.copy_counter import CopyCounter
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.error_reactions import (
    NOT_APPENDED,
    ProduceReaction,
    is_too_old_to_resend,
    lease_end_for_produce_error,
    react_to_produce_error,
)
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.produce.transaction_state import Transaction
from sparkmirror.errors import ClusterError
from sparkmirror.wire.batch.target_limits import UNLIMITED_BYTES
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.produce import (
    OutgoingBatch,
    PartitionProduceResponse,
    ProduceResponseData,
    produce_request,
    produce_version,
    request_overhead,
    supports_topic_ids,
)
from sparkmirror.wire.protocol.topics.topic_key import TopicKey

MAX_REQUEST_BYTES = 4 << 20
MIN_REQUESTS_IN_FLIGHT: Final = 2
"""Requests in flight that keep a broker busy when the round trip is short."""
MIN_EXTRA_REQUEST_BYTES: Final = 1 << 18
LONG_ROUND_TRIP_S: Final = 0.01
REPLICATION_SHARE: Final = 2 / 3
"""The share of the request timeout that the broker may wait for its replicas."""

SentBatches = dict[tuple[TopicKey, int], tuple[LeasedPartition, PendingBatch]]


@dataclass(slots=True)
class Sender:
    """Keeps every target broker busy with the batches that are ready."""

    cluster: ClusterConnections
    counter: CopyCounter
    max_in_flight: int
    request_timeout_s: float
    plain_request_timeout_s: float
    """That of requests with batches that have no producer id."""
    max_request_size: int = UNLIMITED_BYTES
    """The largest request, all of it. No batch is larger than fits into one (`TargetLimits`)."""
    transaction: Transaction | None = None
    blocked_bytes: int = 0
    """What is queued of partitions that the last poll could not send: no leader or connection, a
    backoff, a check, a dead letter or a transaction."""
    _request_overhead: int = field(init=False)
    _ready: dict[LeasedPartition, None] = field(default_factory=dict)
    _round_trips: dict[int, float] = field(default_factory=dict)
    """The fastest response of each broker so far."""

    def __post_init__(self) -> None:
        self._set_request_overhead()

    def use_transactions(self, transaction: Transaction, counter: CopyCounter) -> None:
        """Send in transactions from now on. Requires that no partition is leased."""
        self.transaction, self.counter = transaction, counter
        self._set_request_overhead()

    def _set_request_overhead(self) -> None:
        self._request_overhead = request_overhead(self.cluster.client_id, self._transactional_id)

    @property
    def _transactional_id(self) -> str:
        transaction = self.transaction
        return transaction.transactional_producer.transactional_id if transaction else ""

    def mark_ready(self, partition: LeasedPartition) -> None:
        """Check the partition for batches to send at the next poll."""
        self._ready[partition] = None

    def mark_fetched(self, partition: LeasedPartition) -> None:
        """Check everything that sends records of a partition at the next poll."""
        for sender in partition.senders():
            self.cluster.add_topic(sender.target.topic)
            self.mark_ready(sender)

    @property
    def has_ready_batches(self) -> bool:
        """Whether batches are ready: the next answer of a broker may let the sender send them."""
        return any(partition.queue.ready for partition in self._ready)

    def remove(self, partition: LeasedPartition) -> None:
        """Forget a partition whose lease is returned."""
        for sender in partition.senders():
            self._ready.pop(sender, None)

    def poll(self, now: float) -> None:
        """Send what can be sent."""
        by_node: dict[int, deque[LeasedPartition]] = {}
        blocked_bytes = 0
        for partition in list(self._ready):
            if not partition.queue.ready:
                del self._ready[partition]
                continue
            node = self.cluster.leader_node(partition.target)
            if (
                node is None
                or now < partition.send_backoff.until
                or partition.needs_sequence_check
                or partition.needs_resend_check
                or partition.queue.is_held
                or not partition.may_begin(self.cluster.leader_node, now)
            ):
                blocked_bytes += partition.queue.queued_bytes
            else:
                by_node.setdefault(node, deque()).append(partition)
        for node, partitions in by_node.items():
            connection = self.cluster.connection(node)
            if connection is None:
                blocked_bytes += sum(partition.queue.queued_bytes for partition in partitions)
            elif now >= connection.throttled_until:
                while self._can_send(node, connection, partitions) and self._send(
                    node, connection, partitions, now
                ):
                    pass
        self.blocked_bytes = blocked_bytes

    def _can_send(
        self, node: int, connection: BrokerConnection, partitions: deque[LeasedPartition]
    ) -> bool:
        """Whether another request is useful. A broker handles one at a time: prefer few large."""
        in_flight = connection.in_flight_count
        if in_flight < MIN_REQUESTS_IN_FLIGHT:
            return True
        if in_flight >= self.max_in_flight:
            return False
        is_far = self._round_trips.get(node, 0.0) > LONG_ROUND_TRIP_S
        return (
            is_far
            or sum(p.queue.ready[0].size for p in partitions if p.queue.ready)
            >= MIN_EXTRA_REQUEST_BYTES
        )

    def _send(
        self,
        node: int,
        connection: BrokerConnection,
        partitions: deque[LeasedPartition],
        now: float,
    ) -> bool:
        """Send one request with a batch of each partition; return whether there was a batch."""
        if connection.is_closed:
            return False
        chosen, is_full = choose_batches(partitions, self._request_overhead, self.max_request_size)
        if not chosen:
            return False
        if is_full:
            for partition, _ in chosen:
                self._ready[partition] = self._ready.pop(partition, None)
        transaction = self.transaction
        implicit_add = transaction is None or transaction.is_transaction_v2
        by_id = (implicit_add and supports_topic_ids(connection.api_versions)) and all(
            partition.target_topic_id for partition, _ in chosen
        )
        timeout_s = self._timeout_s(chosen)
        sent: SentBatches = {}
        outgoing = []
        for partition, batch in chosen:
            topic, number = partition.target
            key = self.cluster.topic_key(topic, partition.target_topic_id, by_id=by_id)
            sent[key, number] = partition, batch
            outgoing.append(OutgoingBatch(key, number, batch.buffers))
        request = produce_request(
            produce_version(connection.api_versions, by_id=by_id, implicit_add=implicit_add),
            outgoing,
            timeout_ms=int(timeout_s * REPLICATION_SHARE * 1000),
            transactional_id=self._transactional_id or None,
        )
        self.cluster.loop.run_guarded(
            connection,
            lambda: connection.send(
                request,
                on_response=lambda response: self._on_response(node, now, sent, response),
                on_error=lambda error: self._on_request_lost(sent, error),
                deadline=now + timeout_s,
            ),
        )
        return True

    def _timeout_s(self, chosen: Iterable[tuple[LeasedPartition, PendingBatch]]) -> float:
        is_idempotent = all(partition.queue.lease.is_idempotent for partition, _ in chosen)
        return self.request_timeout_s if is_idempotent else self.plain_request_timeout_s

    # -- responses -------------------------------------------------------------------------------

    def _on_response(
        self, node: int, sent_at: float, sent: SentBatches, response: ProduceResponseData
    ) -> None:
        now, now_ms = time.monotonic(), time.time_ns() // 1_000_000
        self._round_trips[node] = min(self._round_trips.get(node, now), now - sent_at)
        for key, (partition, batch) in sent.items():
            answer = response.partition_responses.get(key)
            if answer is None:
                partition.end_now(
                    LeaseEndReason.AMBIGUOUS, "the target left a batch out of its response"
                )
            elif answer.error_code == 0:
                self._on_appended(partition, batch, answer.base_offset, now_ms)
            else:
                self.cluster.update_leader(
                    partition.target, answer.current_leader, response.node_endpoints
                )
                self._on_error(partition, batch, answer, now)
            partition.on_answer()
            self.mark_ready(partition)

    def _on_appended(
        self, partition: LeasedPartition, batch: PendingBatch, base_offset: int, now_ms: int
    ) -> None:
        queue = partition.queue
        if not queue.is_oldest_in_flight(batch):
            if batch in queue.in_flight:
                partition.end_now(
                    LeaseEndReason.AMBIGUOUS,
                    f"the target took the batch for offset {batch.expected} before an earlier one",
                )
            return
        if not queue.accept_base_offset(batch, base_offset):
            partition.end_now(
                LeaseEndReason.AMBIGUOUS,
                f"a batch for target offset {batch.expected} was appended at {base_offset}:"
                " another program writes to the remote topic, or it was recreated",
            )
            return
        partition.send_backoff.clear()
        header, leased = batch.header, partition.leased
        if header.max_timestamp > leased.max_timestamp_ms:
            leased.max_timestamp_ms = header.max_timestamp
        leased.latencies.add(
            header.base_timestamp, header.max_timestamp, header.record_count, now_ms
        )
        self.counter.count(partition, batch, queue.acknowledge(batch))

    def _on_error(
        self,
        partition: LeasedPartition,
        batch: PendingBatch,
        response: PartitionProduceResponse,
        now: float,
    ) -> None:
        code = ErrorCode(response.error_code)
        if code.action in NOT_APPENDED:
            partition.queue.mark_not_appended(batch)
        reason = f"target: {code}"
        match react_to_produce_error(  # nothing is done about WAIT_FOR_CHECK
            code.action,
            in_transaction=self.transaction is not None,
            can_send=partition.can_send,
            is_oldest=partition.queue.is_oldest_in_flight(batch),
            is_check_pending=partition.needs_sequence_check,
            is_idempotent=partition.queue.lease.is_idempotent,
        ):
            case ProduceReaction.FAIL_TRANSACTION:
                self._fail_transaction(partition, code)
            case ProduceReaction.RESEND:
                partition.send_backoff.start(reason, now)
                partition.queue.resend_in_flight()
                self.cluster.request_metadata_update(partition.target.topic)
            case ProduceReaction.RESEND_IF_SAFE:
                self._resend_if_safe(partition, reason, now)
            case ProduceReaction.RESEND_IF_RECENT:
                self._resend_if_recent(partition, reason, now)
            case ProduceReaction.CHECK_SEQUENCE:
                partition.needs_sequence_check = True
            case ProduceReaction.RESEND_IN_ORDER:
                partition.queue.resend_in_flight()
            case ProduceReaction.COMPARE_LOGS:
                self._end_with_unknown_outcome(partition, reason)
            case ProduceReaction.END_LEASE:
                partition.end_now(*lease_end_for_produce_error(partition.target, batch, response))

    def _fail_transaction(self, partition: LeasedPartition, code: ErrorCode) -> None:
        assert self.transaction
        is_fenced = code.action is ErrorAction.FENCED
        self.transaction.fail(
            LeaseEndReason.FENCED if is_fenced else LeaseEndReason.AMBIGUOUS,
            f"{partition.key}: the target ends the transaction: {code}",
        )

    def _on_request_lost(self, sent: SentBatches, error: ClusterError) -> None:
        now = time.monotonic()
        for partition, _ in sent.values():
            if partition.queue.lease.is_idempotent:
                self._resend_if_recent(partition, f"target: {error}", now)
            else:
                self._end_with_unknown_outcome(partition, f"target: {error}")
            partition.on_answer()
            self.mark_ready(partition)

    def _end_with_unknown_outcome(self, partition: LeasedPartition, reason: str) -> None:
        """End a lease without a producer id: the driver finds out what the target has."""
        partition.end_now(
            LeaseEndReason.AMBIGUOUS,
            f"{reason}; the target recognises no batch that it already has, so nothing is sent"
            " again without a check of the target",
        )
        self.cluster.request_metadata_update(partition.target.topic)

    def _resend_if_recent(self, partition: LeasedPartition, reason: str, now: float) -> None:
        """Resend batches without an answer, unless the broker may have forgotten the producer."""
        if is_too_old_to_resend(
            partition.queue.oldest_timestamp_ms,
            time.time_ns() // 1_000_000,
            in_transaction=self.transaction is not None,
        ):
            partition.end_now(
                LeaseEndReason.AMBIGUOUS,
                f"{reason}; the data is too old to be sent again without a check of the target",
            )
            self.cluster.request_metadata_update(partition.target.topic)
        else:
            self._resend_if_safe(partition, reason, now)

    def _resend_if_safe(self, partition: LeasedPartition, reason: str, now: float) -> None:
        """Resend after a backoff and, outside transactions, after a check for duplicates.

        In a transaction the check is not needed: the broker remembers the producer until the end.
        """
        partition.send_backoff.start(reason, now)
        if partition.queue.in_flight and self.transaction is None:
            partition.needs_resend_check = True
        partition.queue.resend_in_flight()
        self.cluster.request_metadata_update(partition.target.topic)


def choose_batches(
    partitions: deque[LeasedPartition], overhead: int, max_request_size: int
) -> tuple[list[tuple[LeasedPartition, PendingBatch]], bool]:
    """Take a batch of each partition until a request is full; return them, and whether it is.

    The partition whose batch does not fit becomes the first one of the next request. No partition
    behind it is looked at: a task may have thousands.
    """
    chosen: list[tuple[LeasedPartition, PendingBatch]] = []
    size = overhead
    for index, partition in enumerate(partitions):
        if not partition.can_send or not partition.queue.ready:
            continue
        added = partition.queue.ready[0].size + partition.produce_overhead
        if chosen and (size >= MAX_REQUEST_BYTES or size + added > max_request_size):
            partitions.rotate(-index)
            return chosen, True
        if batch := partition.queue.next_to_send():
            chosen.append((partition, batch))
            size += added
    return chosen, False
