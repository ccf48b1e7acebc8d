"""A visit: whatever moves, waits, comes or goes, the broker looks for exactly what is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.course import Course
from sparkmirror.copy.lease import Identity, Lease
from sparkmirror.copy.partition import Partition
from sparkmirror.copy.sorting import Sorter
from sparkmirror.copy.visit import Visit
from sparkmirror.model import TopicPartition
from sparkmirror.wire.connection import Client, Connection
from sparkmirror.wire.fetch import Place, Position
from sparkmirror.wire.fetch_session import WANTED
from sparkmirror.wire.target import Target
from tests.support.fake_broker import FakeBroker

LIMIT = 1 << 20


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with FakeBroker() as broker:
        opened = Connection.open(Client(cluster="primary"), broker.address)
        yield opened
        opened.close()


def course(number: int) -> Course:
    """A course that stands at offset 0."""
    lease = Lease(
        source=TopicPartition("orders", number),
        target=TopicPartition("primary.orders", number),
        position=0,
        expected=0,
        identity=Identity(producer_id=1, producer_epoch=0, anchor=0),
    )
    rules = Target(max_message_bytes=1000, log_append_time=False)
    return Course(Partition(lease), Sorter(rules))


def key_of(one: Course) -> str:
    return one.partition.lease.source.topic


def always(_: Course) -> bool:
    return True


class Broker:
    """What a broker looks for, after all that it was told."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}

    def hear(
        self, visit: Visit, positions: list[Position], forgotten: tuple[Place, ...] = ()
    ) -> None:
        if visit.session.key == WANTED:
            self.offsets.clear()
        for _, number in forgotten:
            del self.offsets[number]
        self.offsets |= {position.partition: position.offset for position in positions}
        visit.session.answered(7)


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
    connection: Connection, story: list[tuple[set[int], set[int], bool]]
) -> None:
    courses = [course(number) for number in range(6)]
    visit, broker, wanted = Visit(connection, False), Broker(), set[int]()
    for moving, members, is_unsettled in story:
        visit.is_settled = visit.is_settled and not is_unsettled
        if visit.may_go_on(connection, LIMIT, always):
            broker.hear(visit, visit.go_on())
        else:
            wanted = members
            visit.is_whole = True
            broker.hear(visit, *visit.begin([courses[n] for n in members], LIMIT, key_of))
        assert broker.offsets == {n: courses[n].partition.fetched for n in wanted}
        assert {n: offset for (_, n), (_, offset) in visit.asked.items()} == broker.offsets
        for number in moving & wanted:
            courses[number].partition.passed(courses[number].partition.fetched + 1)
            visit.moved(("orders", number))


def test_only_who_has_moved_is_looked_at(connection: Connection) -> None:
    visit, looked_at = Visit(connection, False, is_whole=True), list[Course]()
    courses = [course(number) for number in range(1000)]
    Broker().hear(visit, *visit.begin(courses, LIMIT, key_of))
    visit.moved(("orders", 3))

    def look_at(one: Course) -> bool:
        looked_at.append(one)
        return True

    assert visit.may_go_on(connection, LIMIT, look_at)
    assert looked_at == [courses[3]]
    assert [position.partition for position in visit.go_on()] == [3]


def test_nothing_is_taken_for_granted_once_something_has_changed(connection: Connection) -> None:
    def begun() -> Visit:
        visit = Visit(connection, False, is_whole=True)
        Broker().hear(visit, *visit.begin([course(0)], LIMIT, key_of))
        assert visit.may_go_on(connection, LIMIT, always)
        return visit

    partial, unsettled, forgotten, troubled = begun(), begun(), begun(), begun()
    partial.is_whole = False
    unsettled.is_settled = False
    forgotten.session.reset()
    troubled.moved(("orders", 0))
    for visit in (partial, unsettled, forgotten):
        assert not visit.may_go_on(connection, LIMIT, always)
    assert not troubled.may_go_on(connection, LIMIT, lambda _: False)
    assert not begun().may_go_on(connection, LIMIT * 2, always)
