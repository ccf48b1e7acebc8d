"""A fetch session sends changes only; the broker still knows every partition to fetch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.wire.protocol.fetch import FetchPosition, TopicKeyPartition
from sparkmirror.wire.protocol.fetch_session import FetchSession

NEW_SESSION = (0, 0)
"""The id and the epoch of a request that opens a session."""

Positions = dict[TopicKeyPartition, FetchPosition]


def positions(*offsets: tuple[int, int]) -> Positions:
    """Partitions of one topic with their fetch offsets."""
    return {("t", n): FetchPosition("t", n, offset, 1 << 20) for n, offset in offsets}


class SessionBroker:
    """Stores the partitions of a session, as a broker does."""

    def __init__(self) -> None:
        self.partitions: Positions = {}
        self.session = (0, 0)

    def receive(
        self,
        key: tuple[int, int],
        sent: list[FetchPosition],
        forgotten: tuple[TopicKeyPartition, ...],
    ) -> int:
        if key == NEW_SESSION:
            self.partitions, self.session = {}, (self.session[0] + 7, 0)
        else:
            assert key == (self.session[0], self.session[1] + 1), "numbers arrive in order"
            self.session = key
        for place in forgotten:
            del self.partitions[place]
        self.partitions |= {(p.topic, p.partition): p for p in sent}
        return self.session[0]


all_positions = st.dictionaries(st.integers(0, 9), st.integers(0, 3), max_size=6).map(
    lambda offsets: positions(*offsets.items())
)


@given(st.lists(st.tuples(all_positions, st.booleans()), max_size=12))
def test_the_broker_always_has_exactly_the_positions_to_fetch(
    requests: list[tuple[Positions, bool]],
) -> None:
    session, broker = FetchSession(), SessionBroker()
    for expected, is_lost in requests:
        key = session.id_and_epoch
        sent, forgotten = session.next_request(expected)
        if is_lost:
            session.reset()
            continue
        session.on_response(broker.receive(key, sent, forgotten))
        assert broker.partitions == expected


def test_a_request_has_only_the_changed_partitions() -> None:
    session = FetchSession()
    assert session.id_and_epoch == NEW_SESSION
    sent, _ = session.next_request(positions((0, 5), (1, 5)))
    assert len(sent) == 2
    session.on_response(99)
    assert session.id_and_epoch == (99, 1)
    assert session.next_request(positions((0, 5), (1, 6))) == (
        [FetchPosition("t", 1, 6, 1 << 20)],
        (),
    )
    session.on_response(99)
    assert session.next_request(positions((0, 5))) == ([], (("t", 1),))
    assert session.id_and_epoch == (99, 2)


def test_an_incremental_request_forgets_no_partition() -> None:
    session, broker = FetchSession(), SessionBroker()
    sent, forgotten = session.next_request(positions((0, 5), (1, 5)))
    session.on_response(broker.receive(NEW_SESSION, sent, forgotten))
    assert session.is_established
    for offset in (6, 7):
        key = session.id_and_epoch
        sent, _ = session.next_incremental_request(positions((1, offset)))
        assert sent == [FetchPosition("t", 1, offset, 1 << 20)]
        session.on_response(broker.receive(key, sent, ()))
        assert broker.partitions == positions((0, 5), (1, offset))
    assert session.next_request(positions((0, 5), (1, 7))) == ([], ()), (
        "it knows the offsets of incremental requests"
    )


def test_partitions_leave_and_join_a_session_without_a_look_at_the_others() -> None:
    session = FetchSession()
    session.next_request(positions((0, 5), (1, 5)))
    session.on_response(7)
    moved = positions((0, 6), (2, 5))
    removed = (("t", 1), ("t", 9))
    sent, forgotten = session.next_incremental_request(moved, removed)
    assert (sent, forgotten) == (list(moved.values()), (("t", 1),)), "it never had the last one"
    session.on_response(7)
    assert session.next_request(positions((0, 6), (2, 5))) == ([], ())


def test_every_request_is_complete_if_the_broker_gives_no_session() -> None:
    session = FetchSession()
    for _ in range(3):
        assert session.id_and_epoch == NEW_SESSION
        sent, _ = session.next_request(positions((0, 5)))
        assert len(sent) == 1
        session.on_response(0)


def test_the_session_epoch_wraps_to_1() -> None:
    session = FetchSession(_id=3, _epoch=0x7FFFFFFF)
    session.next_request({})
    session.on_response(3)
    assert session.id_and_epoch == (3, 1)
