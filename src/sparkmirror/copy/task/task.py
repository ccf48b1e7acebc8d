"""A copy task: the driver grants leases, the task copies and reports, until the driver drains it.

    source brokers ─▶ Fetcher ─▶ PartitionQueue ─▶ Sender ─▶ target brokers
                                                     └─▶ CopyCounter ─▶ TaskReporter ─▶ driver
    driver ─▶ DriverMessageHandler ─▶ TaskLeases, TaskReporter, Throttle

One thread, one event loop. Each turn handles the sockets, sends what is ready and fetches as much
as the limits allow. After an event or a deadline, at most 20 times a second, the task also
checks unacknowledged batches, returns leases that have ended, and reports. When the last
acknowledged report is older than a lease, the task stops with LeaseLost, because another task may
own its partitions by then.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Self

from sparkmirror.config.client_configs import WORKER_PRODUCER_PREFIX
from sparkmirror.copy.client_config_resolver import resolve_client, resolve_producer_limits
from sparkmirror.copy.control.connection import ControlConnection
from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.messages import ControlMessage, Hello, ReportAck, TaskDone
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.driver_messages import (
    DriverMessageHandler,
    LeaseLost,
    connect_to_driver,
)
from sparkmirror.copy.task.fetcher import Fetcher
from sparkmirror.copy.task.leased_partition import (
    REACHABLE,
    BrokerReachability,
    LeasedPartition,
)
from sparkmirror.copy.task.leases import TaskLeases
from sparkmirror.copy.task.produce.dead_letter_appender import DeadLetterAppender
from sparkmirror.copy.task.produce.dead_letter_writer import DeadLetterWriter
from sparkmirror.copy.task.produce.resend_checks import ResendChecker, SequenceChecker
from sparkmirror.copy.task.produce.sender import Sender
from sparkmirror.copy.task.produce.transaction_manager import TransactionManager
from sparkmirror.copy.task.produce.transaction_state import Transaction
from sparkmirror.copy.task.receipts.epoch_receipts import EpochReceipts, OnEpochEnded, ignore_end
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.copy.task.transform.converter_factory import (
    ConverterFactory,
    NewEvaluator,
    no_evaluator,
)
from sparkmirror.copy.task.transform.failed_records import FailureReporting
from sparkmirror.copy.transaction_committer import TransactionCommitter
from sparkmirror.errors import MirrorError
from sparkmirror.wire.net.buffer_pool import MemoryBudget
from sparkmirror.wire.net.routing import Router

IDLE_WAIT_S = 2.5
"""Longer than a fetch waits at the source, so that an idle task wakes only for the answer."""
TRANSACTION_WAIT_S = 1.0
"""How often a task with transactions looks at them without an event."""
RETRY_WAIT_S = 0.1
"""How often the task looks at a partition that is still in trouble after its backoff. What helps it
is an event: this only limits the effect of an omission."""
COLLECTING_WAIT_S = 0.01
"""How long the target's answers wait at most while records collect for a fetch: they are handled
in the turn of its answer."""
HOUSEKEEPING_INTERVAL_S = 0.05
"""How often at most the task does what need not be done in every turn. While records keep coming
there are hundreds of turns a second, and each of them concerns few partitions."""


class CopyTask:
    """Copies the partitions that the driver grants."""

    def __init__(
        self,
        connection: ControlConnection,
        settings: CopySettings,
        messages: Iterable[ControlMessage] = (),
        new_evaluator: NewEvaluator = no_evaluator,
        on_epoch_ended: OnEpochEnded = ignore_end,
    ) -> None:
        """Take over a connection after the welcome, and the messages that followed the welcome.

        The thread of the task calls `on_epoch_ended` when an epoch ends and the task copies on.
        """
        self.settings = settings
        self.connection = connection
        self.loop = EventLoop()
        source = resolve_client(settings.source_alias, settings.source, settings.client_id)
        target = resolve_client(
            settings.target_alias,
            settings.target,
            settings.client_id,
            file_prefix=WORKER_PRODUCER_PREFIX,
        )
        self._target_client = target
        self.source = ClusterConnections(
            self.loop, *source, MemoryBudget(settings.buffer_memory_bytes)
        )
        self.target = ClusterConnections(self.loop, *target, MemoryBudget(0), is_urgent=False)
        self.throttle = Throttle(settings.bytes_per_s)
        self.reporter = TaskReporter(
            settings.report_interval_s,
            connection.send,
            self._reachability,
            self._reachability_state,
        )
        producer = resolve_producer_limits(settings.target_alias, settings.target)
        self.sender = Sender(
            self.target,
            self.reporter,
            settings.max_in_flight,
            producer.produce_timeout_s(settings.produce_timeout_s, is_idempotent=True),
            producer.produce_timeout_s(settings.produce_timeout_s, is_idempotent=False),
            producer.max_request_size,
        )
        self.fetcher = Fetcher(
            self.source,
            self.sender,
            self.throttle,
            settings.read_committed,
            settings.rack,
            settings.fetch_timeout_s,
        )
        self.source.on_change = self.fetcher.invalidate_brokers
        self.resend_checker = ResendChecker(self.loop, Router(*target), self.sender)
        self.sequence_checker = SequenceChecker(self.loop, Router(*target), self.sender)
        reporting = FailureReporting.for_settings(settings)
        self.error_log = reporting.log if reporting else None
        self.dead_letters = self._new_dead_letter_writer(reporting)
        self.leases = TaskLeases(
            settings=settings,
            source=self.source,
            target=self.target,
            fetcher=self.fetcher,
            sender=self.sender,
            reporter=self.reporter,
            send=connection.send,
            new_transaction_manager=self._new_transaction_manager,
            converters=replace(
                ConverterFactory.for_settings(settings, new_evaluator), reporting=reporting
            ),
            dead_letters=self.dead_letters,
        )
        self._partitions = self.leases.partitions
        self._epoch_receipts = EpochReceipts(self.reporter, self._partitions, on_epoch_ended)
        self._message_handler = DriverMessageHandler(
            self.leases, self.reporter, self.throttle, self._epoch_receipts
        )
        self._housekeeping_at = self._wake_at = 0.0
        self._acknowledgements = self._commands = 0
        """The driver's messages in the last turn."""
        self._is_acknowledgement_only = False
        """Whether the last turn brought nothing but the driver's answer to a report."""
        connection.on_message = self._on_message
        for message in messages:
            self._on_message(message)

    @classmethod
    def connect(
        cls,
        address: tuple[str, int],
        protocol: ControlProtocol,
        secret: bytes,
        hello: Hello,
        new_evaluator: NewEvaluator = no_evaluator,
        on_epoch_ended: OnEpochEnded = ignore_end,
    ) -> Self:
        """Connect to the driver and wait for its welcome. Blocks; see `connect_to_driver`."""
        session = connect_to_driver(address, protocol, secret, hello, on_epoch_ended)
        return cls(*session, new_evaluator, on_epoch_ended)

    def run(self) -> None:
        """Copy until drained. Raises LeaseLost or ControlConnectionLost if the driver is lost."""
        self.loop.register(self.connection, self._on_connection_lost)
        try:
            while not self.leases.is_drained or self._epoch_receipts.is_waiting:
                self.run_once()
            self.reporter.send_report(self._partitions)
            self.connection.send(TaskDone())
            while self.connection.wants_write:
                self.loop.run_once(IDLE_WAIT_S)
            self.connection.close_gracefully()
        finally:
            self.close()

    def run_once(self) -> None:
        """Do everything that can be done now, then wait for the next event or deadline."""
        now = time.monotonic()
        self._check_lease(now)
        if self.leases.transactions:
            self.leases.transactions.poll(self._partitions, now)
        self.sender.poll(now)  # before the fetch, so that fetched batches make space for more
        self.fetcher.poll(self._partitions, now)
        if self.dead_letters:
            self.dead_letters.poll(now)
        if not self._is_acknowledgement_only:
            if now >= self._housekeeping_at:
                self._run_housekeeping(now)
                self._housekeeping_at = now + HOUSEKEEPING_INTERVAL_S
                self._wake_at = self._next_turn_at(now)
            else:
                self._wake_at = self._housekeeping_at
        self._acknowledgements = self._commands = 0
        is_collecting = self.fetcher.lets_records_collect(now) and not self.sender.has_ready_batches
        handled = self.loop.run_once(
            self._wait_s(now, is_collecting), COLLECTING_WAIT_S if is_collecting else 0.0
        )
        self._is_acknowledgement_only = (
            handled == 1 and self._acknowledgements > 0 and not self._commands
        )

    def close(self) -> None:
        """Close all connections and the loop. Sends nothing."""
        if self.dead_letters:
            self.dead_letters.close()
        self.source.close()
        self.target.close()
        self.loop.unregister(self.connection)
        self.connection.close()
        self.loop.close()

    def _run_housekeeping(self, now: float) -> None:
        """Do everything that need not be done in every turn."""
        self._connect_leaders()
        self.source.poll(now)
        self.target.poll(now)
        needing_attention = self.reporter.changed.needing_attention()
        self.resend_checker.poll(needing_attention, now)
        self.sequence_checker.poll(needing_attention)
        self.leases.return_ended(now)
        if self.error_log:
            self.error_log.poll(now)
        self.reporter.send_report_if_due(self._partitions, now)

    def _wait_s(self, now: float, is_collecting: bool) -> float:
        """Return how long to wait for an event.

        While records collect, the next answer of the source is near, and housekeeping waits for
        it. Sleeps through a pause before a fetch: a selector waits for whole milliseconds, and an
        answer of the target need not wake the task.
        """
        wake_s = max(self._wake_at - now, COLLECTING_WAIT_S if is_collecting else 0.0)
        wait_s = min(wake_s, self._next_deadline_s(now))
        next_fetch_at = self.fetcher.next_fetch_at(now)
        if not is_collecting or next_fetch_at - now > wait_s:
            return min(wait_s, next_fetch_at - now)
        time.sleep(max(next_fetch_at - time.monotonic(), 0.0))
        return 0.0

    def _check_lease(self, now: float) -> None:
        """Raise LeaseLost before anything is sent if another task may own the partitions."""
        timeout_s = self.settings.lease_timeout_s
        if now - self.reporter.lease_renewed_at > timeout_s:
            raise LeaseLost(
                "driver",
                f"acknowledged no report for {timeout_s:.0f} s; copying stops until it is back",
            )

    def _next_turn_at(self, now: float) -> float:
        """Return until when only an event can change anything."""
        return min(
            self._next_attempt_at(now),
            self.reporter.next_turn_at,
            self.reporter.lease_renewed_at + self.settings.lease_timeout_s,
            self.source.next_turn_at(now),
            self.target.next_turn_at(now),
            self.leases.next_turn_at(now),
            self.dead_letters.next_turn_at if self.dead_letters else float("inf"),
        )

    def _next_attempt_at(self, now: float) -> float:
        """Return when a partition in a backoff may be fetched or sent again."""
        waiting = [p for p in self.reporter.changed.needing_attention() if p.is_waiting]
        if not waiting:
            return now + IDLE_WAIT_S
        ends = [until for p in waiting for until in p.backoff_ends if until > now]
        return min([*ends, now + RETRY_WAIT_S])

    def _next_deadline_s(self, now: float) -> float:
        """Return how long until a transaction may be committed or the throttle allows a fetch."""
        transactions = self.leases.transactions
        commit_s = IDLE_WAIT_S
        if transactions:
            commit_s = min(transactions.wait_s(now), TRANSACTION_WAIT_S)
        return min(commit_s, self.throttle.wait_s(now) or IDLE_WAIT_S)

    def _on_message(self, message: ControlMessage) -> None:
        if isinstance(message, ReportAck):
            self._acknowledgements += 1
        else:
            self._commands += 1
            self._housekeeping_at = 0.0
        self._message_handler.handle(message)

    def _on_connection_lost(self, error: MirrorError) -> None:
        raise error

    def _new_transaction_manager(self, transaction: Transaction) -> TransactionManager:
        # With a router of its own: a commit of the producer before may still use the last one.
        committer = TransactionCommitter(
            Router(*self._target_client),
            transaction.transactional_producer,
            self.settings.source_alias,
        )
        return TransactionManager(self.loop, transaction, committer, self.reporter)

    def _new_dead_letter_writer(
        self, reporting: FailureReporting | None
    ) -> DeadLetterWriter | None:
        if reporting is None or reporting.topic is None:
            return None
        name = reporting.topic.name
        appender = DeadLetterAppender(Router(*self._target_client), name)
        writer = DeadLetterWriter(self.loop, appender, name, self.sender.mark_ready)
        self.fetcher.on_converted = writer.add
        return writer

    def _connect_leaders(self) -> None:
        """Keep a connection to the brokers of every partition: the loop notices when it closes."""
        self.target.connect_leaders(partition.target for partition in self._partitions)
        self.source.connect_leaders(
            partition.source
            for partition in self._partitions
            if partition.preferred_read_replica is None
        )

    def _reachability_state(self) -> object:
        return (
            self.source.reachability_state(),
            self.target.reachability_state(),
            self.fetcher.answering_nodes(time.monotonic()),
        )

    def _reachability(self, partition: LeasedPartition) -> BrokerReachability:
        source_error = self.source.error_for(partition.source)
        target_error = self.target.error_for(partition.target)
        is_source_silent = not self.fetcher.is_answered(partition, time.monotonic())
        if not (source_error or target_error or is_source_silent):
            return REACHABLE
        return BrokerReachability(
            source_error=source_error,
            target_error=target_error,
            is_source_silent=is_source_silent,
        )
