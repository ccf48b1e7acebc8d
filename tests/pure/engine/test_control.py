"""The control server: who gets in, who is answered at once, and when an epoch ends."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from sparkmirror.copy.link import LinkLost
from sparkmirror.copy.messages import (
    Beat,
    Done,
    Drain,
    Epoch,
    Hello,
    Message,
    NextEpoch,
    Report,
    Welcome,
)
from sparkmirror.copy.seal import HALF, answer
from sparkmirror.engine.control import SECRET_WITHIN_S, ControlServer
from sparkmirror.engine.post import Post
from sparkmirror.engine.rehearsal import Rehearsal, rehearsed_job
from sparkmirror.errors import DriverLost
from tests.support.control_client import ControlClient, hello
from tests.support.waiting import wait_until

REPORT = Report(standings={})


@contextmanager
def serving(
    rehearsal: Rehearsal, *, tasks: int = 2, epoch_s: float = 60.0, first_epoch_s: float = 60.0
) -> Iterator[ControlServer]:
    server = ControlServer(
        rehearsal, tasks=tasks, epoch_s=epoch_s, first_epoch_s=first_epoch_s, bind="127.0.0.1"
    )
    server.start()
    try:
        yield server
    finally:
        server.close()
    assert server.failure() is None


@contextmanager
def overheard(post: Post, heard: bytearray) -> Iterator[Post]:
    """Another way to a server, on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as middle:

        def pass_on() -> None:
            near, _ = middle.accept()
            with near, socket.create_connection(post.address) as far:
                others = {near: far, far: near}
                while True:
                    for sock in select.select([near, far], [], [])[0]:
                        chunk = sock.recv(1 << 16)
                        if not chunk:
                            return
                        heard.extend(chunk)
                        others[sock].sendall(chunk)

        listening = threading.Thread(target=pass_on)
        listening.start()
        yield replace(post, port=middle.getsockname()[1])
        listening.join(timeout=5)


@pytest.fixture
def rehearsal() -> Rehearsal:
    return Rehearsal(rehearsed_job(2), stay=True)


def counts(rehearsal: Rehearsal, what: str, number: int) -> Callable[[], bool]:
    return lambda: rehearsal.counts[what] >= number


def test_a_task_is_announced_welcomed_and_seen_off(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server:
        with ControlClient(server.post) as task:
            task.say(hello(0))
            assert task.hear(Welcome).settings == rehearsal.job.settings.to_json()
            task.say(Done())
            wait_until(counts(rehearsal, "done", 1), "the conductor to hear Done")
        wait_until(counts(rehearsal, "left", 1), "the conductor to be told")


def test_each_report_is_answered_by_one_beat_even_if_the_conductor_is_busy() -> None:
    class Busy(Rehearsal):
        def said(self, hello: Hello, message: Message) -> None:
            self.counts[message.type] += 1

    rehearsal = Busy(rehearsed_job(1))
    with serving(rehearsal) as server, ControlClient(server.post) as task:
        task.say(hello(0), REPORT, REPORT, REPORT)
        for _ in range(3):
            task.hear(Beat)
        with pytest.raises(AssertionError):
            task.hear(Beat, within_s=0.2)


def test_the_last_words_of_a_task_are_heard_although_it_hangs_up(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server:
        for attempt in range(20):
            with ControlClient(server.post) as task:
                task.say(hello(0, attempt))
                task.hear(Welcome)
                task.say(*[REPORT] * 5, Done())
                task.finish()
        wait_until(counts(rehearsal, "left", 20), "everybody to be gone")
        assert rehearsal.counts["done"] == 20
        assert rehearsal.counts["report"] == 100


def test_a_newcomer_without_the_secret_is_turned_away(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server:
        wrong = Post(host=server.post.host, port=server.post.port, secret=b"x" * 64)
        with ControlClient(wrong) as stranger, pytest.raises((LinkLost, OSError)):
            stranger.say(hello(0))
            stranger.hear(Welcome)
        assert not rehearsal.counts


def test_a_newcomer_who_says_nothing_keeps_nobody_waiting(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server:
        assert min(answered_beside_a_mute_one(server.post) for _ in range(3)) < SECRET_WITHIN_S / 2


def answered_beside_a_mute_one(post: Post) -> float:
    """How long a task waits for an answer while a newcomer says nothing."""
    with socket.create_connection(post.address) as mute, ControlClient(post) as task:
        mute.send(b"abc")
        began = time.monotonic()
        task.say(hello(0), REPORT)
        task.hear(Beat)
        return time.monotonic() - began


def test_a_guest_who_talks_nonsense_is_sent_away_and_the_others_stay(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server, ControlClient(server.post) as task:
        task.say(hello(0))
        with socket.create_connection(server.post.address) as fool:
            fool.settimeout(50)
            answered, seals = answer(server.post.secret, fool.recv(HALF))
            nonsense = seals.outgoing.close(b"nonsense")
            fool.sendall(answered + len(nonsense).to_bytes(4, "big") + nonsense)
            assert fool.recv(1) == b""
        task.say(REPORT)
        task.hear(Beat)


def test_nothing_that_is_said_can_be_read_on_the_way(rehearsal: Rehearsal) -> None:
    """Client properties travel in the welcome: whoever listens must not get to know them."""
    heard = bytearray()
    with (
        serving(rehearsal) as server,
        overheard(server.post, heard) as post,
        ControlClient(post) as task,
    ):
        task.say(hello(0))
        welcome = task.hear(Welcome)
    assert welcome.settings["source"] == {"bootstrap.servers": "127.0.0.1:1"}
    assert len(heard) > 100
    for hidden in (b"bootstrap", b"welcome", b"hello", server.post.secret):
        assert hidden not in heard


def test_a_port_that_is_taken_is_named(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server, pytest.raises(DriverLost, match=str(server.post.port)):
        ControlServer(rehearsal, tasks=1, epoch_s=1, bind="127.0.0.1", port=server.post.port)


def test_epochs_are_counted_up_as_the_query_asks_for_them(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server, ControlClient(server.post) as query:
        for number in (1, 2):
            query.say(NextEpoch(after=number - 1))
            assert query.hear(Epoch) == Epoch(number=number, tasks=2)
            assert server.epoch == number
        assert not server.is_resting


def test_after_the_finish_there_is_no_further_epoch(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server, ControlClient(server.post) as query:
        query.say(NextEpoch(after=0))
        query.hear(Epoch)
        server.finish()
        assert not server.is_resting, "the epoch is still under way"
        query.say(NextEpoch(after=1))
        assert query.hear(Epoch) == Epoch(number=1, tasks=2)
        assert server.is_resting


def test_without_tasks_there_is_no_epoch() -> None:
    with (
        serving(Rehearsal(rehearsed_job(0)), tasks=0) as server,
        ControlClient(server.post) as query,
    ):
        query.say(NextEpoch(after=4))
        assert query.hear(Epoch).number == 4


def test_another_number_of_tasks_ends_the_epoch_and_holds_from_the_next_on(
    rehearsal: Rehearsal,
) -> None:
    with (
        serving(rehearsal) as server,
        ControlClient(server.post) as query,
        ControlClient(server.post) as task,
    ):
        query.say(NextEpoch(after=0))
        query.hear(Epoch)
        task.say(hello(0))
        task.hear(Welcome)
        server.set_tasks(2)
        server.set_tasks(5)
        task.hear(Drain)
        query.say(NextEpoch(after=1))
        assert query.hear(Epoch) == Epoch(number=2, tasks=5)
        assert rehearsal.counts["end_epoch"] == 1


def test_no_tasks_for_a_while_is_a_rest_and_not_the_end(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server, ControlClient(server.post) as query:
        server.set_tasks(0)
        query.say(NextEpoch(after=3))
        assert query.hear(Epoch).number == 3
        server.set_tasks(1)
        query.say(NextEpoch(after=3))
        assert query.hear(Epoch) == Epoch(number=4, tasks=1)
        server.finish()
        assert not server.is_resting, "an epoch is under way"


def test_an_epoch_ends_so_long_after_its_first_task_came(rehearsal: Rehearsal) -> None:
    with (
        serving(rehearsal, epoch_s=0.2) as server,
        ControlClient(server.post) as query,
        ControlClient(server.post) as task,
    ):
        query.say(NextEpoch(after=0))
        query.hear(Epoch)
        time.sleep(0.4)
        assert rehearsal.counts["end_epoch"] == 0, "nobody has come yet"
        task.say(hello(0))
        task.hear(Drain)
        assert rehearsal.counts["end_epoch"] == 1


def test_the_first_epoch_is_short_once_all_its_tasks_are_there(rehearsal: Rehearsal) -> None:
    with serving(rehearsal, first_epoch_s=0.2) as server, ControlClient(server.post) as query:
        for epoch in range(2):
            query.say(NextEpoch(after=epoch))
            query.hear(Epoch)
            with ControlClient(server.post) as task, ControlClient(server.post) as other:
                task.say(hello(0))
                task.hear(Welcome)
                time.sleep(0.4)
                assert rehearsal.counts["end_epoch"] == epoch, "one of its tasks has not come yet"
                other.say(hello(1))
                if epoch == 0:
                    other.hear(Drain)
                else:
                    time.sleep(0.4)
                    assert rehearsal.counts["end_epoch"] == 1, "only the first one is short"


def test_a_task_that_comes_after_the_end_does_not_hold_up_the_next_epoch(
    rehearsal: Rehearsal,
) -> None:
    with (
        serving(rehearsal, epoch_s=0.2) as server,
        ControlClient(server.post) as query,
        ControlClient(server.post) as task,
        ControlClient(server.post) as late,
    ):
        query.say(NextEpoch(after=0))
        query.hear(Epoch)
        task.say(hello(0))
        task.hear(Drain)
        late.say(hello(1))
        late.hear(Drain)


def test_many_tasks_are_served_at_once(rehearsal: Rehearsal) -> None:
    with serving(rehearsal) as server:
        with ExitStack() as stack:
            tasks = [stack.enter_context(ControlClient(server.post)) for _ in range(100)]
            for number, task in enumerate(tasks):
                task.say(hello(number), REPORT)
            for task in tasks:
                task.hear(Beat)
        wait_until(counts(rehearsal, "left", 100), "all to leave")


def test_the_secret_is_not_printed() -> None:
    post = Post(host="h", port=1, secret=b"hidden")
    assert "hidden" not in repr(post)
