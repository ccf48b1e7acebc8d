"""Calls in the loop's thread, from this thread and from others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from sparkmirror.copy.event_loop import MAX_READ_WITHOUT_SELECT, EventLoop
from tests.support.copy.receiver import Receiver

LONG_S = 50.0


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


def test_a_call_from_another_thread_ends_the_wait(loop: EventLoop) -> None:
    called: list[str] = []
    loop.run_once(0)
    caller = threading.Timer(0.05, lambda: loop.call_soon(lambda: called.append("call")))
    caller.start()
    assert loop.run_once(LONG_S) == 1
    assert called == ["call"]
    caller.join()


def test_a_call_from_the_loops_own_thread_is_made_without_a_wait(loop: EventLoop) -> None:
    called: list[str] = []
    loop.run_once(0)
    loop.call_soon(lambda: loop.call_soon(lambda: called.append("second")))
    begun = time.monotonic()
    assert loop.run_once(LONG_S) == 2
    assert time.monotonic() - begun < LONG_S / 2
    assert called == ["second"]
    assert loop.run_once(0) == 0, "no wake-up is left"


def test_a_loop_that_moves_to_another_thread_is_woken_by_the_first_one(loop: EventLoop) -> None:
    handled: list[int] = []
    loop.run_once(0)
    mover = threading.Thread(target=lambda: handled.append(loop.run_once(LONG_S)))
    mover.start()
    time.sleep(0.05)  # the other thread waits by then; if not, it sees the call before it waits
    loop.call_soon(lambda: None)
    mover.join(LONG_S / 2)
    assert handled == [1]


@pytest.fixture
def receivers(loop: EventLoop) -> Iterator[tuple[Receiver, Receiver]]:
    """An urgent one and one that is not."""
    both = Receiver(), Receiver()
    for receiver, is_urgent in zip(both, (True, False), strict=True):
        loop.register(receiver, lambda _: None, is_urgent=is_urgent)
    yield both
    for receiver in both:
        loop.unregister(receiver)
        receiver.close()


def test_an_event_that_is_not_urgent_is_handled_with_the_next_urgent_one(
    loop: EventLoop, receivers: tuple[Receiver, Receiver]
) -> None:
    urgent, other = receivers
    other.sender.send(b"!")
    later = threading.Timer(0.05, lambda: urgent.sender.send(b"!"))
    later.start()
    assert loop.run_once(LONG_S, urgent_only_s=LONG_S) == 2
    assert (urgent.received, other.received) == (1, 1)
    later.join()


def test_an_event_that_is_not_urgent_waits_no_longer_than_allowed(
    loop: EventLoop, receivers: tuple[Receiver, Receiver]
) -> None:
    _, other = receivers
    other.sender.send(b"!")
    begun = time.monotonic()
    assert loop.run_once(LONG_S, urgent_only_s=0.05) == 1
    assert 0.05 <= time.monotonic() - begun < LONG_S / 2
    other.sender.send(b"!")
    assert loop.run_once(LONG_S) == 1
    assert other.received == 2


def test_a_call_from_another_thread_is_urgent(loop: EventLoop) -> None:
    loop.run_once(0)
    caller = threading.Timer(0.05, lambda: loop.call_soon(lambda: None))
    caller.start()
    assert loop.run_once(LONG_S, urgent_only_s=LONG_S) == 1
    caller.join()


def test_many_channels_that_are_not_urgent_are_handled_with_an_urgent_one(loop: EventLoop) -> None:
    made = [Receiver() for _ in range(MAX_READ_WITHOUT_SELECT + 3)]
    for receiver in made:
        loop.register(receiver, lambda _: None, is_urgent=receiver is made[0])
    for receiver in made[:-1]:
        receiver.sender.send(b"!")
    assert loop.run_once(LONG_S, urgent_only_s=LONG_S) == len(made) - 1
    assert [receiver.received for receiver in made] == [1] * (len(made) - 1) + [0]
    for receiver in made:
        loop.unregister(receiver)
        receiver.close()


def test_a_channel_that_wants_to_write_does_not_wait(
    loop: EventLoop, receivers: tuple[Receiver, Receiver]
) -> None:
    _, other = receivers
    other.wants_write = True
    assert loop.run_once(LONG_S, urgent_only_s=LONG_S) == 1
    assert other.written == 1


@pytest.mark.parametrize("lost", [0, 1], ids=["urgent", "other"])
def test_a_lost_channel_is_watched_no_longer(
    loop: EventLoop, receivers: tuple[Receiver, Receiver], lost: int
) -> None:
    receivers[lost].sender.close()
    assert loop.run_once(LONG_S, urgent_only_s=0.01) > 0
    begun = time.monotonic()
    assert loop.run_once(0.05, urgent_only_s=0.05) == 0
    assert time.monotonic() - begun >= 0.05, "it has no event any more"
