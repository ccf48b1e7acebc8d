"""Events of a connector are kept once, also across drivers."""

from __future__ import annotations

from sparkmirror.copy.snapshot import MAX_EVENTS, CopyEvent
from sparkmirror.worker.source_connector_events import SHOWN_EVENTS, SourceConnectorEvents


def event(number: int) -> CopyEvent:
    return CopyEvent(at_ms=number, kind="takeover", partition="t-0", text=f"number {number}")


def test_event_that_is_reported_again_is_not_new() -> None:
    history = SourceConnectorEvents()
    assert history.add([event(1)]) == (event(1),)
    assert history.add([event(1), event(2)]) == (event(2),)
    assert history.add([event(1), event(2)]) == ()
    assert history.latest() == (event(1), event(2))


def test_events_survive_a_driver_that_starts_without_events() -> None:
    history = SourceConnectorEvents()
    history.add([event(1)])
    assert history.add([]) == ()
    assert history.add([event(5)]) == (event(5),)
    assert history.latest() == (event(1), event(5))


def test_the_oldest_events_go_and_do_not_come_back() -> None:
    history = SourceConnectorEvents()
    first = [event(number) for number in range(MAX_EVENTS)]
    history.add(first)
    later = [*first[1:], event(MAX_EVENTS)]
    assert history.add(later) == (event(MAX_EVENTS),)
    assert history.latest() == tuple(later[-SHOWN_EVENTS:])
    assert history.add(later) == ()
