"""The fetch plan: the broker always has exactly the wanted partitions and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.fetch_plan import (
    MAX_FETCH_BYTES,
    MIN_FETCH_BYTES,
    ConversionTurn,
    FetchPlan,
    FetchSizeEstimator,
)
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.fetch import FetchedPartition, FetchPosition, TopicKeyPartition
from tests.support.copy.pending_batches import make_lease, make_partition
from tests.support.kafka.fake_broker import FakeBroker

NEW_SESSION = (0, 0)
"""The id and the epoch of a request that opens a session."""

PARTITION_MAX_BYTES = 1 << 20
MAX_QUEUED_BYTES = 100


@pytest.fixture(scope="module")
def connection() -> Iterator[BrokerConnection]:
    with FakeBroker() as broker:
        opened = BrokerConnection.open(ClientConfig(cluster="primary"), broker.address)
        yield opened
        opened.close()


def partition_at_0(number: int) -> LeasedPartition:
    return make_partition(PartitionQueue(make_lease(position=0, partition=number)))


def topic_key(partition: LeasedPartition) -> str:
    return partition.source.topic


class Broker:
    """The partitions and offsets in the broker's fetch session."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}

    def receive(
        self,
        plan: FetchPlan,
        positions: list[FetchPosition],
        forgotten: tuple[TopicKeyPartition, ...] = (),
    ) -> None:
        if plan.session.id_and_epoch == NEW_SESSION:
            self.offsets.clear()
        for _, number in forgotten:
            del self.offsets[number]
        self.offsets |= {position.partition: position.offset for position in positions}
        plan.session.on_response(7)


def next_full(
    plan: FetchPlan,
    partitions: list[LeasedPartition],
    excluded: Iterable[LeasedPartition] = (),
) -> tuple[list[FetchPosition], tuple[TopicKeyPartition, ...]]:
    return plan.next_full(partitions, excluded, PARTITION_MAX_BYTES, MAX_QUEUED_BYTES, topic_key)


def test_a_new_lease_of_a_partition_that_only_the_broker_remembers_opens_a_session(
    connection: BrokerConnection,
) -> None:
    plan, broker, before = FetchPlan(connection, False, 12), Broker(), partition_at_0(0)
    broker.receive(plan, *next_full(plan, [before]))
    plan.mark_advanced(("orders", 0))
    before.end_now(LeaseEndReason.OUT_OF_RANGE, "the source was truncated")
    plan.update(MAX_QUEUED_BYTES, 10.0)
    assert not plan.requested, "so no request tells the broker"
    positions, _ = next_full(plan, [partition_at_0(0)])
    assert (plan.session.id_and_epoch, [each.partition for each in positions]) == (NEW_SESSION, [0])


def fetched(number: int) -> FetchedPartition:
    return FetchedPartition("orders", number, 0, 9, 9, 0, (), -1, memoryview(b""), None, None)


def test_partitions_that_were_not_converted_in_time_come_first_the_next_time(
    connection: BrokerConnection,
) -> None:
    """Each response has the same four partitions, and there is time for one of them."""
    plan = FetchPlan(connection, False, 12)
    converted = []
    for _ in range(8):
        first, *others = plan.in_turn([fetched(number) for number in range(4)])
        converted.append(first.partition)
        plan.postponed += [(one.topic, one.partition) for one in others]
    assert converted == [0, 1, 2, 3, 0, 1, 2, 3]


def test_requests_become_smaller_if_responses_are_not_converted_in_time() -> None:
    estimator = FetchSizeEstimator(max_bytes=MAX_FETCH_BYTES)
    estimator.on_converted(ConversionTurn(1.0, converted_bytes=6 << 20))
    assert estimator.max_bytes == MAX_FETCH_BYTES
    estimator.on_converted(ConversionTurn(1.0, converted_bytes=6 << 20, unread_bytes=1))
    assert estimator.max_bytes == 12 << 20
    estimator.on_converted(ConversionTurn(1.0, converted_bytes=1, unread_bytes=1))
    assert estimator.max_bytes == MIN_FETCH_BYTES


@dataclass(frozen=True)
class Step:
    """What happens before a request is sent."""

    assigned: frozenset[int] | None
    """The partitions that are read from the broker from now on; None: the same."""
    advancing: frozenset[int]
    failing: frozenset[int]
    filled: frozenset[int]
    emptied: frozenset[int]
    ending: int | None
    passed_s: float


NUMBERS = st.frozensets(st.integers(0, 5))
STEPS = st.builds(
    Step,
    assigned=st.none() | st.none() | st.frozensets(st.integers(0, 5), min_size=1),
    advancing=NUMBERS,
    failing=NUMBERS,
    filled=NUMBERS,
    emptied=NUMBERS,
    ending=st.none() | st.none() | st.integers(0, 5),
    passed_s=st.floats(0, 0.1),
)


class Reader:
    """Six partitions that are read with one plan, as the fetcher does."""

    def __init__(self, connection: BrokerConnection) -> None:
        self.partitions = [partition_at_0(number) for number in range(6)]
        self.assigned = list(self.partitions)
        self.plan, self.broker, self.now = FetchPlan(connection, False, 12), Broker(), 10.0
        self.full_requests = 0

    def wanted(self) -> dict[int, int]:
        """The partitions that a request must read, with their offsets."""
        return {
            partition.source.partition: partition.queue.next_fetch_offset
            for partition in self.assigned
            if partition.can_fetch(MAX_QUEUED_BYTES, self.now)
        }

    def happen(self, step: Step, *, is_sent: bool) -> None:
        """Time passes, and a request that was sent is answered."""
        self.now += step.passed_s
        answered = (step.advancing | step.failing) & set(self.broker.offsets if is_sent else ())
        for number in answered:
            partition = self.partitions[number]
            self.plan.mark_advanced(("orders", number))
            if number in step.failing:
                partition.fetch_backoff.start("source: down", self.now)
            else:
                partition.fetch_backoff.clear()
                partition.queue.skip_to(partition.queue.next_fetch_offset + 1)
                if number in step.filled:
                    partition.queue.queued_bytes = MAX_QUEUED_BYTES
            if number == step.ending:
                partition.end_after_queue(LeaseEndReason.SOURCE_GONE, "gone")
        for number in step.emptied:
            self.partitions[number].queue.queued_bytes = 0
        if step.assigned is not None:
            self.assigned = [self.partitions[number] for number in step.assigned]
            self.plan.is_current = False

    def request(self) -> bool:
        """Send the next request; return whether there is one."""
        if self.plan.can_continue(self.plan.connection, PARTITION_MAX_BYTES):
            self.plan.update(MAX_QUEUED_BYTES, self.now)
            if not self.plan.requested:
                return False
            self.broker.receive(self.plan, *self.plan.next_incremental())
            return True
        open_leases = [p for p in self.assigned if not p.is_ending]
        fetchable = [p for p in open_leases if p.can_fetch(MAX_QUEUED_BYTES, self.now)]
        if not fetchable:
            return False
        self.full_requests += 1
        others = [p for p in open_leases if p not in fetchable]
        self.broker.receive(self.plan, *next_full(self.plan, fetchable, others))
        return True


@given(st.lists(STEPS, max_size=20))
def test_the_broker_has_exactly_the_wanted_partitions_and_offsets(
    connection: BrokerConnection, steps: list[Step]
) -> None:
    reader = Reader(connection)
    for step in steps:
        is_sent = reader.request()
        assert is_sent == bool(reader.wanted())
        if is_sent:
            plan = reader.plan
            assert reader.broker.offsets == reader.wanted()
            requested = {n: offset for (_, n), (_, offset) in plan.requested.items()}
            assert requested == reader.broker.offsets
            open_leases = {p for p in reader.assigned if not p.is_ending}
            taking_part = {p for p, _ in plan.requested.values()}
            assert set(plan.excluded.values()) == open_leases - taking_part
            assert plan.reads_all(open_leases)
        reader.happen(step, is_sent=is_sent)


@given(st.lists(STEPS, max_size=20))
def test_only_another_assignment_needs_a_full_request(
    connection: BrokerConnection, steps: list[Step]
) -> None:
    reader = Reader(connection)
    is_sent = reader.request()
    for step in steps:
        reader.happen(replace(step, assigned=None), is_sent=is_sent)
        is_sent = reader.request()
    assert reader.full_requests == 1


def test_only_partitions_that_advanced_are_named(connection: BrokerConnection) -> None:
    plan, broker = FetchPlan(connection, False, 12), Broker()
    broker.receive(plan, *next_full(plan, [partition_at_0(number) for number in range(1000)]))
    plan.mark_advanced(("orders", 3))
    plan.update(MAX_QUEUED_BYTES, now=1.0)
    positions, forgotten = plan.next_incremental()
    assert ([position.partition for position in positions], forgotten) == ([3], ())


def test_a_partition_in_a_backoff_is_looked_at_when_the_backoff_ends(
    connection: BrokerConnection,
) -> None:
    failing = partition_at_0(0)
    plan, broker = FetchPlan(connection, False, 12), Broker()
    broker.receive(plan, *next_full(plan, [failing, partition_at_0(1)]))
    failing.fetch_backoff.start("source: down", 10.0)
    plan.mark_advanced(("orders", 0))
    plan.update(MAX_QUEUED_BYTES, now=10.0)
    assert plan.next_incremental() == ([], (("orders", 0),))
    assert plan.excluded_until == failing.fetch_backoff.until
    plan.update(MAX_QUEUED_BYTES, failing.fetch_backoff.until)
    positions, forgotten = plan.next_incremental()
    assert ([position.partition for position in positions], forgotten) == ([0], ())
    assert plan.excluded_until == float("inf")


def test_after_any_change_the_next_request_is_a_full_one(
    connection: BrokerConnection,
) -> None:
    def started_plan() -> FetchPlan:
        plan = FetchPlan(connection, False, 12)
        Broker().receive(plan, *next_full(plan, [partition_at_0(0)]))
        assert plan.can_continue(connection, PARTITION_MAX_BYTES)
        return plan

    reassigned, lost_session = started_plan(), started_plan()
    reassigned.is_current = False
    lost_session.session.reset()
    for plan in (reassigned, lost_session):
        assert not plan.can_continue(connection, PARTITION_MAX_BYTES)
    assert not started_plan().can_continue(connection, PARTITION_MAX_BYTES * 2)


def test_a_partition_that_is_leased_again_is_answered_although_nothing_has_changed(
    connection: BrokerConnection,
) -> None:
    plan, broker, other = FetchPlan(connection, False, 12), Broker(), partition_at_0(1)
    broker.receive(plan, *next_full(plan, [partition_at_0(0), other]))
    again = [partition_at_0(0), other]
    assert not plan.reads_all(again)
    positions, forgotten = next_full(plan, again)
    assert plan.session.id_and_epoch == NEW_SESSION
    assert [position.partition for position in positions] == [0, 1]
    broker.receive(plan, positions, forgotten)
    assert next_full(plan, again) == ([], ())
