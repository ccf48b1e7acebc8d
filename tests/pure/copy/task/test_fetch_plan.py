"""A visit: whatever moves, waits, comes or goes, the broker looks for exactly what is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.fetch_plan import FetchPlan
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.partition_queue import PartitionQueue
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.fetch import FetchPosition, TopicKeyPartition
from sparkmirror.wire.protocol.fetch_session import NEW_SESSION
from tests.support.kafka.fake_broker import FakeBroker

LIMIT = 1 << 20


@pytest.fixture(scope="module")
def connection() -> Iterator[BrokerConnection]:
    with FakeBroker() as broker:
        opened = BrokerConnection.open(ClientConfig(cluster="primary"), broker.address)
        yield opened
        opened.close()


def course(number: int) -> LeasedPartition:
    """A course that stands at offset 0."""
    lease = Lease(
        source=TopicPartition("orders", number),
        target=TopicPartition("primary.orders", number),
        position=0,
        expected=0,
        identity=LeaseIdentity(producer_id=1, producer_epoch=0, anchor=0),
    )
    rules = TargetLimits(max_message_bytes=1000, log_append_time=False)
    return LeasedPartition(PartitionQueue(lease), BatchConverter(rules))


def key_of(one: LeasedPartition) -> str:
    return one.queue.lease.source.topic


def always(_: LeasedPartition) -> bool:
    return True


class Broker:
    """What a broker looks for, after all that it was told."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}

    def hear(
        self,
        visit: FetchPlan,
        positions: list[FetchPosition],
        forgotten: tuple[TopicKeyPartition, ...] = (),
    ) -> None:
        if visit.session.id_and_epoch == NEW_SESSION:
            self.offsets.clear()
        for _, number in forgotten:
            del self.offsets[number]
        self.offsets |= {position.partition: position.offset for position in positions}
        visit.session.on_response(7)


@given(
    st.lists(
        st.tuples(
            st.sets(st.integers(0, 5)),  # who brings something
            st.sets(st.integers(0, 5), min_size=1),  # who is asked for if the visit begins anew
            st.booleans(),  # whether others are to be asked for
        ),
        max_size=15,
    )
)
def test_the_broker_looks_for_exactly_what_is_wanted(
    connection: BrokerConnection, story: list[tuple[set[int], set[int], bool]]
) -> None:
    courses = [course(number) for number in range(6)]
    visit, broker, wanted = FetchPlan(connection, False), Broker(), set[int]()
    for moving, members, is_unsettled in story:
        visit.is_current = visit.is_current and not is_unsettled
        if visit.can_continue(connection, LIMIT, always):
            broker.hear(visit, visit.next_incremental())
        else:
            wanted = members
            visit.is_complete = True
            broker.hear(visit, *visit.next_full([courses[n] for n in members], LIMIT, key_of))
        assert broker.offsets == {n: courses[n].queue.next_fetch_offset for n in wanted}
        assert {n: offset for (_, n), (_, offset) in visit.requested.items()} == broker.offsets
        for number in moving & wanted:
            courses[number].queue.skip_to(courses[number].queue.next_fetch_offset + 1)
            visit.mark_advanced(("orders", number))


def test_only_who_has_moved_is_looked_at(connection: BrokerConnection) -> None:
    visit, looked_at = FetchPlan(connection, False, is_complete=True), list[LeasedPartition]()
    courses = [course(number) for number in range(1000)]
    Broker().hear(visit, *visit.next_full(courses, LIMIT, key_of))
    visit.mark_advanced(("orders", 3))

    def look_at(one: LeasedPartition) -> bool:
        looked_at.append(one)
        return True

    assert visit.can_continue(connection, LIMIT, look_at)
    assert looked_at == [courses[3]]
    assert [position.partition for position in visit.next_incremental()] == [3]


def test_nothing_is_taken_for_granted_once_something_has_changed(
    connection: BrokerConnection,
) -> None:
    def begun() -> FetchPlan:
        visit = FetchPlan(connection, False, is_complete=True)
        Broker().hear(visit, *visit.next_full([course(0)], LIMIT, key_of))
        assert visit.can_continue(connection, LIMIT, always)
        return visit

    partial, unsettled, forgotten, troubled = begun(), begun(), begun(), begun()
    partial.is_complete = False
    unsettled.is_current = False
    forgotten.session.reset()
    troubled.mark_advanced(("orders", 0))
    for visit in (partial, unsettled, forgotten):
        assert not visit.can_continue(connection, LIMIT, always)
    assert not troubled.can_continue(connection, LIMIT, lambda _: False)
    assert not begun().can_continue(connection, LIMIT * 2, always)
