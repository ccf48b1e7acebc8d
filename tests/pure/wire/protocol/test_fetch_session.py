"""A fetch session: what is said together with what is remembered is always what is wanted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.wire.protocol.fetch import FetchPosition, TopicKeyPartition
from sparkmirror.wire.protocol.fetch_session import NEW_SESSION, FetchSession

Wish = dict[TopicKeyPartition, FetchPosition]


def wish(*offsets: tuple[int, int]) -> Wish:
    """Partitions of one topic with the offsets to go on at."""
    return {("t", n): FetchPosition("t", n, offset, 1 << 20) for n, offset in offsets}


class Broker:
    """Remembers a session as a broker does: all that was ever said and not taken back."""

    def __init__(self) -> None:
        self.remembered: Wish = {}
        self.session = (0, 0)

    def hear(
        self,
        key: tuple[int, int],
        named: list[FetchPosition],
        forgotten: tuple[TopicKeyPartition, ...],
    ) -> int:
        if key == NEW_SESSION:
            self.remembered, self.session = {}, (self.session[0] + 7, 0)
        else:
            assert key == (self.session[0], self.session[1] + 1), "numbers arrive in order"
            self.session = key
        for place in forgotten:
            del self.remembered[place]
        self.remembered |= {(p.topic, p.partition): p for p in named}
        return self.session[0]


wishes = st.dictionaries(st.integers(0, 9), st.integers(0, 3), max_size=6).map(
    lambda offsets: wish(*offsets.items())
)


@given(st.lists(st.tuples(wishes, st.booleans()), max_size=12))
def test_the_broker_always_looks_for_exactly_what_is_wanted(
    story: list[tuple[Wish, bool]],
) -> None:
    session, broker = FetchSession(), Broker()
    for wanted, is_lost in story:
        key = session.id_and_epoch
        named, forgotten = session.next_request(wanted)
        if is_lost:
            session.reset()
            continue
        session.on_response(broker.hear(key, named, forgotten))
        assert broker.remembered == wanted


def test_only_what_has_changed_is_named() -> None:
    session = FetchSession()
    assert session.id_and_epoch == NEW_SESSION
    named, _ = session.next_request(wish((0, 5), (1, 5)))
    assert len(named) == 2
    session.on_response(99)
    assert session.id_and_epoch == (99, 1)
    assert session.next_request(wish((0, 5), (1, 6))) == ([FetchPosition("t", 1, 6, 1 << 20)], ())
    session.on_response(99)
    assert session.next_request(wish((0, 5))) == ([], (("t", 1),))
    assert session.id_and_epoch == (99, 2)


def test_going_on_names_what_has_moved_and_nothing_is_taken_back() -> None:
    session, broker = FetchSession(), Broker()
    named, forgotten = session.next_request(wish((0, 5), (1, 5)))
    session.on_response(broker.hear(NEW_SESSION, named, forgotten))
    assert session.is_established
    for offset in (6, 7):
        key = session.id_and_epoch
        named = session.next_incremental_request(wish((1, offset)))
        assert named == [FetchPosition("t", 1, offset, 1 << 20)]
        session.on_response(broker.hear(key, named, ()))
        assert broker.remembered == wish((0, 5), (1, offset))
    assert session.next_request(wish((0, 5), (1, 7))) == ([], ()), (
        "it remembers what it went on with"
    )


def test_a_broker_that_gives_no_session_is_told_everything_each_time() -> None:
    session = FetchSession()
    for _ in range(3):
        assert session.id_and_epoch == NEW_SESSION
        named, _ = session.next_request(wish((0, 5)))
        assert len(named) == 1
        session.on_response(0)


def test_the_number_of_a_request_never_becomes_the_first_again() -> None:
    session = FetchSession(_id=3, _epoch=0x7FFFFFFF)
    session.next_request({})
    session.on_response(3)
    assert session.id_and_epoch == (3, 1)
