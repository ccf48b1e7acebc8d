"""Reports and checks look at changed partitions only, and miss nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.control.messages import (
    ControlMessage,
    GrantLeases,
    LeaseEnded,
    LeaseEndReason,
    ProgressReport,
)
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.settings import CopySettings, target_limits_to_json
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.fetch_plan import FetchPlan, FetchSizeEstimator
from sparkmirror.copy.task.fetcher import Fetcher
from sparkmirror.copy.task.leased_partition import REACHABLE, BrokerReachability, LeasedPartition
from sparkmirror.copy.task.leases import TaskLeases
from sparkmirror.copy.task.produce.resend_checks import ResendChecker, SequenceChecker
from sparkmirror.copy.task.produce.sender import Sender
from sparkmirror.copy.task.produce.transaction_manager import TransactionManager
from sparkmirror.copy.task.produce.transaction_state import Transaction
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.errors import ClusterUnavailable
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffer_pool import BufferPool, MemoryBudget
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import FetchedPartition, FetchResponseData
from sparkmirror.wire.protocol.produce import PartitionProduceResponse, ProduceResponseData
from tests.support.copy.pending_batches import make_lease
from tests.support.kafka.fake_broker import FakeBroker

NUMBERS = range(4)
NODE = 1
LOST = ClusterUnavailable("target", "lost")
FETCH_ERRORS = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_OUT_OF_RANGE]
PRODUCE_ERRORS = [
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.MESSAGE_TOO_LARGE,
]
UNREACHABLE = BrokerReachability(source_error="source: down")


@pytest.fixture(scope="module")
def connection() -> Iterator[BrokerConnection]:
    with FakeBroker() as broker:
        opened = BrokerConnection.open(ClientConfig(cluster="primary"), broker.address)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


class Task:
    """A task whose brokers answer as the test says."""

    def __init__(self, loop: EventLoop, connection: BrokerConnection) -> None:
        self.sent: list[ControlMessage] = []
        self.reachability = REACHABLE
        source = ClusterConnections(loop, ClientConfig(cluster="source"), [], MemoryBudget(0))
        target = ClusterConnections(loop, ClientConfig(cluster="target"), [], MemoryBudget(0))
        self.reporter = TaskReporter(
            1.0, self.sent.append, lambda _: self.reachability, lambda: self.reachability
        )
        self.sender = Sender(target, self.reporter, 5, 15.0, 60.0)
        self.fetcher = Fetcher(source, self.sender, Throttle(), False, "", 10.0)
        router = Router(ClientConfig(cluster="target"), [])
        self.resend_checker = ResendChecker(loop, router, self.sender)
        self.sequence_checker = SequenceChecker(loop, router, self.sender)
        self.leases = TaskLeases(
            settings=CopySettings(),
            source=source,
            target=target,
            fetcher=self.fetcher,
            sender=self.sender,
            reporter=self.reporter,
            send=self.sent.append,
            new_transaction_manager=self._no_transactions,
            converters=ConverterFactory(),
        )
        self.plan = FetchPlan(connection, False, 12)
        for number in NUMBERS:
            self.grant(number)

    def _no_transactions(self, _: Transaction) -> TransactionManager:
        raise AssertionError("the grant has no transactional producer")

    def partition(self, number: int) -> LeasedPartition | None:
        found = [p for p in self.leases.partitions if p.source.partition == number]
        return found[0] if found else None

    # -- what may happen -------------------------------------------------------------------------

    def grant(self, number: int) -> None:
        if self.partition(number) is None:
            limits = {"primary.orders": target_limits_to_json(TargetLimits())}
            leases = [make_lease(partition=number)]
            self.leases.grant(GrantLeases(leases=leases, target_limits=limits))

    def revoke(self, number: int) -> None:
        self.leases.revoke([f"orders-{number}"])

    def fetch(self, number: int, code: ErrorCode = ErrorCode.NONE, records: int = 0) -> None:
        """A fetch is answered, perhaps one that was sent before the lease was returned."""
        partition = self.partition(number)
        if partition:
            self.plan.requested["orders", number] = partition, partition.queue.next_fetch_offset
        if ("orders", number) not in self.plan.requested:
            return
        partition, offset = self.plan.requested["orders", number]
        batch = [Record(offset + n, 1, None, b"v") for n in range(records)]
        content = build_batch(batch) if records else b""
        frame = BufferPool().allocate(len(content))
        frame.view[:] = content
        fetched = FetchedPartition(
            "orders", number, code.value, offset + 9, -1, -1, (), -1, frame.view, None, None
        )
        response = FetchResponseData(
            throttle_time_ms=0, error_code=0, partitions=[fetched], node_endpoints=(), frame=frame
        )
        self.fetcher._on_response(NODE, self.plan, FetchSizeEstimator(), 0.0, response)

    def lose_fetch(self, number: int) -> None:
        partition = self.partition(number)
        if partition:
            self.plan.requested = {("orders", number): (partition, 0)}
            self.fetcher._plans[NODE] = self.plan
            self.fetcher._on_request_lost(NODE, self.plan, LOST)

    def answer(self, number: int, code: ErrorCode = ErrorCode.NONE) -> None:
        """A batch is sent and answered."""
        partition = self.partition(number)
        batch = partition.queue.next_to_send() if partition else None
        if partition and batch:
            key = partition.target.topic, number
            answer = PartitionProduceResponse(
                *key, code.value, batch.expected, -1, -1, (), None, None
            )
            response = ProduceResponseData(
                throttle_time_ms=0, partition_responses={key: answer}, node_endpoints=()
            )
            self.sender._on_response(NODE, 0.0, {key: (partition, batch)}, response)

    def lose_batch(self, number: int) -> None:
        partition = self.partition(number)
        batch = partition.queue.next_to_send() if partition else None
        if partition and batch:
            self.sender._on_request_lost({("orders", number): (partition, batch)}, LOST)

    def check(self, number: int) -> None:
        """A check of the target ends."""
        partition = self.partition(number)
        if partition and partition.needs_resend_check:
            waiting = {partition.target: partition}
            self.resend_checker._on_result(waiting, {partition.target: True})
        if partition and partition.needs_sequence_check:
            self.sequence_checker._on_end_offset(partition, partition.queue.next_expected)

    def end(self, number: int) -> None:
        partition = self.partition(number)
        if partition:
            partition.end_now(LeaseEndReason.REFUSED, "refused")

    def lose_source(self, _: int) -> None:
        self.reachability = UNREACHABLE

    def reach_source(self, _: int) -> None:
        self.reachability = REACHABLE

    def return_ended(self, _: int) -> None:
        self.leases.return_ended(0.0)
        assert not any(p.is_ended for p in self.leases.partitions)


HAPPENINGS: list[Callable[[Task, int], None]] = [
    Task.grant,
    Task.revoke,
    lambda task, number: task.fetch(number),
    *(lambda task, number, c=code: task.fetch(number, c) for code in FETCH_ERRORS),
    *[lambda task, number: task.fetch(number, records=3)] * 4,
    Task.lose_fetch,
    *[lambda task, number: task.answer(number)] * 2,
    *(lambda task, number, c=code: task.answer(number, c) for code in PRODUCE_ERRORS),
    Task.lose_batch,
    Task.check,
    Task.end,
    Task.lose_source,
    Task.reach_source,
    Task.return_ended,
]


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.sampled_from(NUMBERS)), max_size=5),
        max_size=10,
    )
)
def test_a_report_of_changed_partitions_is_that_of_all_partitions(
    loop: EventLoop,
    connection: BrokerConnection,
    rounds: list[list[tuple[Callable[[Task, int], None], int]]],
) -> None:
    task = Task(loop, connection)
    for happenings in rounds:
        for happen, number in happenings:
            happen(task, number)
        task.reporter.send_report(task.leases.partitions)
        partitions = list(task.leases.partitions)
        state = {p.key: p.progress_values(task.reachability) for p in partitions}
        assert task.reporter._reported == state
        assert not any(p.has_ages or p.suppressed or p.converter.lanes for p in partitions)
        needing = {p for p in partitions if p.needs_attention}
        assert set(task.reporter.changed.needing_attention()) == needing


def test_a_report_names_no_partition_whose_lease_is_returned(
    loop: EventLoop, connection: BrokerConnection
) -> None:
    task = Task(loop, connection)
    task.fetch(0)
    task.revoke(0)
    task.return_ended(0)
    task.sent.clear()
    task.fetch(0)
    task.return_ended(0)
    task.reporter.send_report(task.leases.partitions)
    assert not any(isinstance(message, LeaseEnded) for message in task.sent)
    (report,) = (message for message in task.sent if isinstance(message, ProgressReport))
    assert "orders-0" not in report.progress


def test_partitions_without_news_are_not_looked_at(
    loop: EventLoop, connection: BrokerConnection
) -> None:
    task = Task(loop, connection)
    task.reporter.send_report(task.leases.partitions)
    looks: list[LeasedPartition] = []

    def look(partition: LeasedPartition) -> BrokerReachability:
        looks.append(partition)
        return REACHABLE

    task.reporter.reachability = look
    task.fetch(2, records=1)
    task.reporter.send_report(task.leases.partitions)
    task.reporter.send_report(task.leases.partitions)
    assert looks == [task.partition(2)]
