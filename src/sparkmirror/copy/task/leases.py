"""The leases of a task: granted, revoked, drained and returned.

    GrantLeases ──▶ LeasedPartition ──▶ fetched, sent, acknowledged ──▶ LeaseEnded ──▶ driver
                        ▲ closed by RevokeLeases or Drain

In exactly-once mode the grant has a transactional producer. All leases of a task then belong to one
transaction after the other, and a lease is returned when everything of it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import (
    ControlMessage,
    GrantLeases,
    LeaseEnded,
    LeaseEndReason,
)
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.settings import CopySettings, target_limits_from_json
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.fetcher import Fetcher
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.dead_letter_writer import DeadLetterWriter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.routing_queue import RoutingQueue
from sparkmirror.copy.task.produce.sender import Sender
from sparkmirror.copy.task.produce.transaction_manager import TransactionManager
from sparkmirror.copy.task.produce.transaction_state import Transaction
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.copy.task.routing_partition import RoutingPartition
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.copy.task.transform.routed_batches import RoutedTopic
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.wire.batch.target_limits import TargetLimits

DEADLINE_PASSED_S = 0.001
"""The task looks again so long after a deadline: at the deadline itself it has not passed."""


@dataclass(slots=True, kw_only=True)
class TaskLeases:
    """Holds the leased partitions of a task. Belongs to the task's thread."""

    settings: CopySettings
    source: ClusterConnections
    target: ClusterConnections
    fetcher: Fetcher
    sender: Sender
    reporter: TaskReporter
    send: Callable[[ControlMessage], None]
    new_transaction_manager: Callable[[Transaction], TransactionManager]
    converters: ConverterFactory
    dead_letters: DeadLetterWriter | None = None
    """Writes the records that fail; None if they have no topic."""
    transactions: TransactionManager | None = None
    """In exactly-once mode, from the first grant on."""
    _by_key: dict[str, LeasedPartition] = field(default_factory=dict)
    _drain_deadline: float | None = None
    _routed_topics: dict[str, RoutedTopic] = field(default_factory=dict)
    """The other topics that transformations may send records to, as the driver named them."""

    @property
    def partitions(self) -> Collection[LeasedPartition]:
        """A live view of every partition whose lease is not returned."""
        return self._by_key.values()

    @property
    def is_drained(self) -> bool:
        """Whether a drain began and every lease is returned."""
        return self._drain_deadline is not None and not self._by_key

    def next_turn_at(self, now: float) -> float:
        """Return when a drain must end although no event arrives; infinity if there is none."""
        deadline = self._drain_deadline
        return float("inf") if deadline is None or now > deadline else deadline + DEADLINE_PASSED_S

    def grant(self, grant: GrantLeases) -> None:
        """Start to copy the granted partitions."""
        if grant.transactional_producer:
            self._start_transactions(grant.transactional_producer)
        self._routed_topics |= {
            topic: RoutedTopic(count, target_limits_from_json(grant.target_limits[topic]))
            for topic, count in grant.routed_topics.items()
        }
        self.fetcher.invalidate_brokers()
        self.target.invalidate_leaders()
        for lease in grant.leases:
            limits = target_limits_from_json(grant.target_limits[lease.target.topic])
            partition = self._new_partition(lease, limits, grant.policy_topics)
            partition.mark_changed()
            assert partition.key not in self._by_key, "a lease is granted once"
            self._by_key[partition.key] = partition
            self.source.add_topic(lease.source.topic)
            self.target.add_topic(lease.target.topic)
            if self._drain_deadline is not None:
                partition.close()

    def _new_partition(
        self, lease: Lease, limits: TargetLimits, policy_topics: Mapping[str, str]
    ) -> LeasedPartition:
        on_change, transaction = self.reporter.changed.add, self.sender.transaction
        if not self.converters.routes_records(lease):
            converter = self.converters.new_converter(lease, limits, policy_topics)
            return LeasedPartition(PartitionQueue(lease, transaction), converter, on_change)
        assert transaction is not None, "routes by record need transactions"
        queue = RoutingQueue(lease, transaction)
        return RoutingPartition(
            queue,
            self.converters.new_routing_converter(
                lease, limits, policy_topics, self._routed_topics
            ),
            on_change,
            routing_queue=queue,
            forget_topic=self._forget_topic,
        )

    def _forget_topic(self, topic: str) -> None:
        self._routed_topics.pop(topic, None)

    def revoke(self, keys: Collection[str]) -> None:
        """Close these partitions; unknown ones were already returned."""
        for key in keys:
            if key in self._by_key:
                self._by_key[key].close()

    def drain(self, now: float) -> None:
        """Close all partitions, and those that are granted later. Sets the drain deadline."""
        self._drain_deadline = now + self.settings.drain_timeout_s
        for partition in self.partitions:
            partition.close()

    def return_ended(self, now: float) -> None:
        """Report and return every lease that has ended.

        Ends all leases after the drain deadline or a failed transaction.
        """
        if self._drain_deadline is not None and now > self._drain_deadline:
            self._end_all(LeaseEndReason.AMBIGUOUS, "not acknowledged in time while draining")
        if self.transactions and self.transactions.failure:
            self._end_all(*self.transactions.failure)
        needing = self.reporter.changed.needing_attention()
        ended = [partition for partition in needing if self._can_return(partition)]
        if not ended:
            return
        self.fetcher.invalidate_brokers()
        self.target.invalidate_leaders()
        # The driver must have the last counts of a lease before its end.
        self.reporter.send_report(self.partitions)
        for partition in ended:
            self._return(partition)

    def _return(self, partition: LeasedPartition) -> None:
        del self._by_key[partition.key]
        self.reporter.forget(partition)
        self.sender.remove(partition)
        if self.dead_letters:
            self.dead_letters.remove(partition)
        is_clean = self._is_clean(partition)
        lease = partition.queue.abandon()
        assert partition.end_reason is not None
        self.send(
            LeaseEnded(
                partition=partition.key,
                reason=partition.end_reason,
                message=partition.end_message,
                position=lease.position,
                expected=lease.expected,
                records=lease.records,
                is_clean=is_clean,
                refused_codec=partition.refused_codec,
                wanted_topic=partition.wanted_topic,
            )
        )

    def _start_transactions(self, producer: TransactionalProducer) -> None:
        """Commit under this producer from now on, unless the task already has it."""
        if self.transactions and self.transactions.transaction.transactional_producer == producer:
            return
        assert not self._by_key, "a transactional producer changes when no partition is leased"
        self._routed_topics.clear()
        transaction = Transaction(producer)
        self.transactions = self.new_transaction_manager(transaction)
        self.sender.use_transactions(transaction, self.transactions)

    def _end_all(self, reason: LeaseEndReason, message: str) -> None:
        if self.transactions:
            self.transactions.transaction.fail(reason, message)
        for partition in self.partitions:
            partition.end_now(reason, message)

    def _can_return(self, partition: LeasedPartition) -> bool:
        if not partition.is_ended:
            return False
        return self.transactions is None or self.transactions.is_resolved(partition)

    def _is_clean(self, partition: LeasedPartition) -> bool:
        """Whether the next owner needs no fence: the outcome of everything sent is known."""
        if self.transactions and self.transactions.failure:
            return False
        return partition.queue.is_unambiguous and partition.end_reason is not LeaseEndReason.FENCED
