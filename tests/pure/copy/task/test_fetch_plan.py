"""The fetch plan: the broker always has exactly the wanted partitions and offsets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.task.fetch_plan import FetchPlan
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.fetch import FetchPosition, TopicKeyPartition
from tests.support.copy.pending_batches import make_lease, make_partition
from tests.support.kafka.fake_broker import FakeBroker

NEW_SESSION = (0, 0)
"""The id and the epoch of a request that opens a session."""

PARTITION_MAX_BYTES = 1 << 20


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


def always(_: LeasedPartition) -> bool:
    return True


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


@given(
    st.lists(
        st.tuples(
            st.sets(st.integers(0, 5)),  # the partitions with new records
            st.sets(st.integers(0, 5), min_size=1),  # the partitions of the next full request
            st.booleans(),  # whether the partitions are assigned again
        ),
        max_size=15,
    )
)
def test_the_broker_has_exactly_the_wanted_partitions_and_offsets(
    connection: BrokerConnection, steps: list[tuple[set[int], set[int], bool]]
) -> None:
    partitions = [partition_at_0(number) for number in range(6)]
    plan, broker, wanted = FetchPlan(connection, False), Broker(), set[int]()
    for advancing, members, is_reassigned in steps:
        plan.is_current = plan.is_current and not is_reassigned
        if plan.can_continue(connection, PARTITION_MAX_BYTES, always):
            broker.receive(plan, plan.next_incremental())
        else:
            wanted = members
            plan.is_complete = True
            broker.receive(
                plan,
                *plan.next_full([partitions[n] for n in members], PARTITION_MAX_BYTES, topic_key),
            )
        assert broker.offsets == {n: partitions[n].queue.next_fetch_offset for n in wanted}
        assert {n: offset for (_, n), (_, offset) in plan.requested.items()} == broker.offsets
        for number in advancing & wanted:
            partitions[number].queue.skip_to(partitions[number].queue.next_fetch_offset + 1)
            plan.mark_advanced(("orders", number))


def test_only_partitions_that_advanced_are_checked_and_named(connection: BrokerConnection) -> None:
    plan, checked = FetchPlan(connection, False, is_complete=True), list[LeasedPartition]()
    partitions = [partition_at_0(number) for number in range(1000)]
    Broker().receive(plan, *plan.next_full(partitions, PARTITION_MAX_BYTES, topic_key))
    plan.mark_advanced(("orders", 3))

    def check(partition: LeasedPartition) -> bool:
        checked.append(partition)
        return True

    assert plan.can_continue(connection, PARTITION_MAX_BYTES, check)
    assert checked == [partitions[3]]
    assert [position.partition for position in plan.next_incremental()] == [3]


def test_after_any_change_the_next_request_is_a_full_one(
    connection: BrokerConnection,
) -> None:
    def started_plan() -> FetchPlan:
        plan = FetchPlan(connection, False, is_complete=True)
        Broker().receive(plan, *plan.next_full([partition_at_0(0)], PARTITION_MAX_BYTES, topic_key))
        assert plan.can_continue(connection, PARTITION_MAX_BYTES, always)
        return plan

    partial, reassigned, lost_session, in_backoff = (
        started_plan(),
        started_plan(),
        started_plan(),
        started_plan(),
    )
    partial.is_complete = False
    reassigned.is_current = False
    lost_session.session.reset()
    in_backoff.mark_advanced(("orders", 0))
    for plan in (partial, reassigned, lost_session):
        assert not plan.can_continue(connection, PARTITION_MAX_BYTES, always)
    assert not in_backoff.can_continue(connection, PARTITION_MAX_BYTES, lambda _: False)
    assert not started_plan().can_continue(connection, PARTITION_MAX_BYTES * 2, always)


def test_a_partition_that_is_leased_again_is_answered_although_nothing_has_changed(
    connection: BrokerConnection,
) -> None:
    plan, broker, other = FetchPlan(connection, False), Broker(), partition_at_0(1)
    broker.receive(plan, *plan.next_full([partition_at_0(0), other], 1, topic_key))
    again = [partition_at_0(0), other]
    positions, forgotten = plan.next_full(again, 1, topic_key)
    assert plan.session.id_and_epoch == NEW_SESSION
    assert [position.partition for position in positions] == [0, 1]
    broker.receive(plan, positions, forgotten)
    assert plan.next_full(again, 1, topic_key) == ([], ())
