"""A task: leases in, records copied, reports out, until the driver drains it or is gone.

One thread, one loop. Each turn: serve the sockets, send what is ready, fetch where there is room;
now and then: settle what is doubtful, give back what has ended, report. The driver's word is law:
when the last report that was answered by a beat is older than a lease, the task stops by itself and
says so, because by then somebody else may own its partitions.
"""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Iterable
from typing import Self

from sparkmirror.copy.client_setup import resolve_client
from sparkmirror.copy.committer import Committer
from sparkmirror.copy.control.connection import ControlConnection
from sparkmirror.copy.control.messages import (
    AbortTask,
    ControlMessage,
    Drain,
    GrantLeases,
    Hello,
    LeaseEnded,
    LeaseEndReason,
    ReportAck,
    RevokeLeases,
    SetRateLimit,
    TaskDone,
    Welcome,
)
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.settings import CopySettings, target_limits_from_json
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.fetcher import Fetcher
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.partition_queue import PartitionQueue
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.copy.task.sender import Sender
from sparkmirror.copy.task.sequence_check import SequenceChecker
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.copy.task.transaction import Transaction
from sparkmirror.copy.task.transaction_manager import TransactionManager
from sparkmirror.copy.task.unacknowledged import ResendChecker
from sparkmirror.copy.transactional_producer import TransactionalProducer
from sparkmirror.errors import ClusterUnavailable, MirrorError
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.net.buffers import MemoryBudget
from sparkmirror.wire.net.routing import Router

log = logging.getLogger(__name__)

IDLE_WAIT_S = 0.5
RETRY_WAIT_S = 0.01
HOUSEKEEPING_INTERVAL_S = 0.01
"""How often to look after every partition. At a thousand records a second there are two thousand
turns, of which one partition each is concerned."""
WELCOME_TIMEOUT_S = 30.0


class LeaseLost(ClusterUnavailable):
    """The driver was not heard for the length of a lease, or has given up this task."""


class CopyTask:
    """Copies what it is granted."""

    def __init__(
        self, settings: CopySettings, link: ControlConnection, early: Iterable[ControlMessage] = ()
    ) -> None:
        """Take over a link on which the welcome was heard; `early` came right behind it."""
        self.settings = settings
        self.loop = EventLoop()
        self.partitions: dict[str, LeasedPartition] = {}
        self.budget = MemoryBudget(settings.buffer_memory_bytes)
        source = resolve_client(settings.source_alias, settings.source, settings.client_id)
        target = resolve_client(settings.target_alias, settings.target, settings.client_id)
        self.source = ClusterConnections(self.loop, *source, self.budget)
        self.target = ClusterConnections(self.loop, *target, MemoryBudget(0))
        self.throttle = Throttle(settings.bytes_per_s)
        self.fetcher = Fetcher(
            self.source, settings.read_committed, settings.rack, self._on_fetched
        )
        self.source.on_metadata_update = self.fetcher.invalidate_brokers
        self.sender = Sender(
            self.target,
            settings.max_in_flight,
            self._on_acknowledged,
            lambda: time.time_ns() // 1_000_000,
        )
        self.resend_checker = ResendChecker(self.loop, Router(*target), self.sender.mark_ready)
        self.sequence_checker = SequenceChecker(
            self.loop, Router(*target), self._on_acknowledged, self.sender.mark_ready
        )
        self.connection = link
        self.reporter = TaskReporter(settings.report_interval_s, link.send, self._connection_error)
        self._housekeeping_at = 0.0
        self._drain_deadline: float | None = None
        self._target_client = target
        self._transaction_manager: TransactionManager | None = None
        """In exactly-once mode, from the first grant on."""
        link.on_message = self._on_message
        for message in early:
            self._on_message(message)

    @classmethod
    def connect(cls, address: tuple[str, int], secret: bytes, hello: Hello) -> Self:
        """Report for duty at a driver and wait to be welcomed."""
        heard: list[ControlMessage] = []
        link = ControlConnection.connect(address, secret, heard.append)
        link.send(hello)
        deadline = time.monotonic() + WELCOME_TIMEOUT_S
        while not heard:
            if not select.select([link], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise LeaseLost("driver", f"no welcome within {WELCOME_TIMEOUT_S:.0f} s")
            link.on_readable()
        welcome = heard.pop(0)
        if not isinstance(welcome, Welcome):
            raise LeaseLost("driver", f"said {type(welcome).__name__} instead of a welcome")
        return cls(CopySettings.from_json(welcome.settings), link, heard)

    # -- life ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Copy until drained. Raises LeaseLost or LinkLost when the driver is gone."""
        self.loop.register(self.connection, self._on_connection_lost)
        try:
            while not self._is_done():
                self.run_once()
            self.reporter.send_report(self.partitions.values())
            self.connection.send(TaskDone())
            while self.connection.wants_write:
                self.loop.run_once(IDLE_WAIT_S)
            self.connection.close_gracefully()
        finally:
            self.close()

    def run_once(self) -> None:
        """Do everything that can be done now, then wait a moment for more."""
        now = time.monotonic()
        self._check_lease(now)
        if self._transaction_manager:
            self._transaction_manager.poll(self.partitions.values(), now)
        self.sender.poll(now)  # what is here goes on before more is asked for
        self.fetcher.poll(self.partitions.values(), now, self.throttle)
        if now >= self._housekeeping_at:
            self._run_housekeeping(now)
            self._housekeeping_at = now + HOUSEKEEPING_INTERVAL_S
            rest_s = self._idle_wait_s(now)
        else:
            rest_s = (
                self._housekeeping_at - now
            )  # what has happened meanwhile is looked after first
        self.loop.run_once(min(rest_s, self._next_deadline_s(now)))

    def _run_housekeeping(self, now: float) -> None:
        """Look after everything that no record on its way depends on."""
        self.source.poll(now)
        self.target.poll(now)
        self.resend_checker.poll(self.partitions.values(), now)
        self.sequence_checker.poll(self.partitions.values())
        self._return_leases(now)
        self.reporter.send_report_if_due(self.partitions.values(), now)

    def _check_lease(self, now: float) -> None:
        """Before anything is sent: by now another task may own the partitions."""
        if now - self.reporter.lease_renewed_at > self.settings.lease_timeout_s:
            raise LeaseLost(
                "driver",
                f"not heard for {self.settings.lease_timeout_s:.0f} s; copying stops until it"
                f" is back",
            )

    def close(self) -> None:
        """Let go of everything, without a word."""
        self.source.close()
        self.target.close()
        self.loop.unregister(self.connection)
        self.connection.close()
        self.loop.close()

    def _is_done(self) -> bool:
        return self._drain_deadline is not None and not self.partitions

    def _idle_wait_s(self, now: float) -> float:
        """How long nothing but an event can change anything."""
        wait = min(IDLE_WAIT_S, max(self.reporter.next_report_at - now, 0.0))
        if any(
            course.fetch_backoff.reason or course.send_backoff.reason or course.needs_sequence_check
            for course in self.partitions.values()
        ):
            wait = min(wait, RETRY_WAIT_S)
        return wait

    def _next_deadline_s(self, now: float) -> float:
        """How long until a transaction may end, or more may be fetched."""
        transacting_s = (
            self._transaction_manager.wait_s(now) if self._transaction_manager else IDLE_WAIT_S
        )
        return min(transacting_s, self.throttle.wait_s(now) or IDLE_WAIT_S)

    # -- the driver's word ---------------------------------------------------------------------

    def _on_message(self, message: ControlMessage) -> None:
        self._housekeeping_at = 0.0
        match message:
            case ReportAck():
                self.reporter.on_report_ack()
            case AbortTask():
                raise LeaseLost("driver", f"this task was given up: {message.reason}")
            case GrantLeases():
                self._grant(message)
            case RevokeLeases():
                self._revoke(message)
            case SetRateLimit():
                self.throttle.bytes_per_s = message.bytes_per_s
            case Drain():
                self._drain_deadline = time.monotonic() + self.settings.drain_timeout_s
                for course in self.partitions.values():
                    course.close()
            case _:
                log.warning("A driver does not say %s", type(message).__name__)

    def _grant(self, grant: GrantLeases) -> None:
        if grant.transactional_producer:
            self._start_transactions(grant.transactional_producer)
        self.fetcher.invalidate_brokers()
        for lease in grant.leases:
            rules = target_limits_from_json(grant.target_limits[lease.target.topic])
            sorter = BatchConverter(
                rules, self.settings.read_committed, leader_epoch=lease.source_epoch
            )
            course = LeasedPartition(PartitionQueue(lease, self.sender.transaction), sorter)
            assert course.key not in self.partitions, "a lease is granted once"
            self.partitions[course.key] = course
            self.source.add_topic(lease.source.topic)
            self.target.add_topic(lease.target.topic)
            if self._drain_deadline is not None:
                course.close()

    def _start_transactions(self, term: TransactionalProducer) -> None:
        """Commit under this term from now on, unless it has begun, or failed, already."""
        if (
            self._transaction_manager
            and self._transaction_manager.transaction.transactional_producer == term
        ):
            return
        assert not self.partitions, "a term ends with the last lease of it"
        transaction = Transaction(term)
        self.sender.transaction = transaction
        self._transaction_manager = TransactionManager(
            self.loop,
            transaction,
            # With a router of its own: what the last term has under way may not have ended yet.
            Committer(Router(*self._target_client), term, self.settings.source_alias),
            self.reporter.count_copied,
        )

    def _revoke(self, revoke: RevokeLeases) -> None:
        for key in revoke.partitions:
            if key in self.partitions:
                self.partitions[key].close()

    def _on_connection_lost(self, error: MirrorError) -> None:
        raise error

    # -- copying -------------------------------------------------------------------------------

    def _on_fetched(self, course: LeasedPartition, size: int) -> None:
        self.throttle.consume(size, time.monotonic())
        self.sender.mark_ready(course)

    def _on_acknowledged(
        self, course: LeasedPartition, parcel: PendingBatch, runs: list[OffsetRun]
    ) -> None:
        if self._transaction_manager:
            self._transaction_manager.on_acknowledged(course, parcel, runs)
        else:
            self.reporter.count_copied(course, parcel, runs)

    # -- giving back -----------------------------------------------------------------------------

    def _return_leases(self, now: float) -> None:
        if self._drain_deadline is not None and now > self._drain_deadline:
            self._end_all(LeaseEndReason.AMBIGUOUS, "not acknowledged in time while draining")
        if self._transaction_manager and self._transaction_manager.failure:
            self._end_all(*self._transaction_manager.failure)
        leaving = [key for key, course in self.partitions.items() if self._can_return(course)]
        if leaving:
            self.fetcher.invalidate_brokers()
            # What was copied is told before the lease ends.
            self.reporter.send_report(self.partitions.values())
        for key in leaving:
            course = self.partitions.pop(key)
            self.sender.remove(course)
            is_clean = self._is_clean(course)
            lease = course.queue.abandon()
            assert course.end_reason is not None
            self.connection.send(
                LeaseEnded(
                    partition=key,
                    reason=course.end_reason,
                    message=course.end_message,
                    position=lease.position,
                    expected=lease.expected,
                    records=lease.records,
                    is_clean=is_clean,
                )
            )

    def _end_all(self, how: LeaseEndReason, why: str) -> None:
        if self._transaction_manager:
            self._transaction_manager.transaction.fail(how, why)
        for course in self.partitions.values():
            course.end_now(how, why)

    def _can_return(self, course: LeasedPartition) -> bool:
        if not course.is_ended:
            return False
        return self._transaction_manager is None or self._transaction_manager.is_resolved(course)

    def _is_clean(self, course: LeasedPartition) -> bool:
        """Whether the fate of everything of it is known, and it may go on without a fence."""
        if self._transaction_manager and self._transaction_manager.failure:
            return False
        return course.queue.is_unambiguous and course.end_reason is not LeaseEndReason.FENCED

    def _connection_error(self, course: LeasedPartition) -> str:
        lease = course.queue.lease
        return self.target.error_for(lease.target) or self.source.error_for(lease.source)
