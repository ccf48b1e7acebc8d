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

from sparkmirror.copy.control.connection import ControlConnectionLost
from sparkmirror.copy.control.encryption import NONCE_BYTES, answer_challenge
from sparkmirror.copy.control.messages import (
    ControlMessage,
    Drain,
    EpochAssignment,
    Hello,
    ProgressReport,
    ReportAck,
    RequestEpoch,
    TaskDone,
    Welcome,
)
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.driver.control_server import HANDSHAKE_TIMEOUT_S, ControlServer
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from sparkmirror.errors import DriverLost
from tests.support.copy.control_client import ControlClient, task_hello
from tests.support.waiting import wait_until

REPORT = ProgressReport(progress={})


@contextmanager
def serving(
    rehearsal: NoopConductor, *, tasks: int = 2, epoch_s: float = 60.0, first_epoch_s: float = 60.0
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
def overheard(post: ControlEndpoint, heard: bytearray) -> Iterator[ControlEndpoint]:
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
def rehearsal() -> NoopConductor:
    return NoopConductor(job_without_partitions(2), hold_tasks=True)


def counts(rehearsal: NoopConductor, what: str, number: int) -> Callable[[], bool]:
    return lambda: rehearsal.counts[what] >= number


def test_a_task_is_announced_welcomed_and_seen_off(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server:
        with ControlClient(server.endpoint) as task:
            task.send(task_hello(0))
            assert task.receive(Welcome).settings == rehearsal.job.settings.to_json()
            task.send(TaskDone())
            wait_until(counts(rehearsal, "done", 1), "the conductor to hear Done")
        wait_until(counts(rehearsal, "left", 1), "the conductor to be told")


def test_each_report_is_answered_by_one_beat_even_if_the_conductor_is_busy() -> None:
    class Busy(NoopConductor):
        def on_task_message(self, hello: Hello, message: ControlMessage) -> None:
            self.counts[message.type] += 1

    rehearsal = Busy(job_without_partitions(1))
    with serving(rehearsal) as server, ControlClient(server.endpoint) as task:
        task.send(task_hello(0), REPORT, REPORT, REPORT)
        for _ in range(3):
            task.receive(ReportAck)
        with pytest.raises(AssertionError):
            task.receive(ReportAck, within_s=0.2)


def test_the_last_words_of_a_task_are_heard_although_it_hangs_up(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server:
        for attempt in range(20):
            with ControlClient(server.endpoint) as task:
                task.send(task_hello(0, attempt))
                task.receive(Welcome)
                task.send(*[REPORT] * 5, TaskDone())
                task.finish()
        wait_until(counts(rehearsal, "left", 20), "everybody to be gone")
        assert rehearsal.counts["done"] == 20
        assert rehearsal.counts["report"] == 100


def test_a_newcomer_without_the_secret_is_turned_away(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server:
        wrong = ControlEndpoint(
            host=server.endpoint.host, port=server.endpoint.port, secret=b"x" * 64
        )
        with ControlClient(wrong) as stranger, pytest.raises((ControlConnectionLost, OSError)):
            stranger.send(task_hello(0))
            stranger.receive(Welcome)
        assert not rehearsal.counts


def test_a_newcomer_who_says_nothing_keeps_nobody_waiting(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server:
        assert (
            min(answered_beside_a_mute_one(server.endpoint) for _ in range(3))
            < HANDSHAKE_TIMEOUT_S / 2
        )


def answered_beside_a_mute_one(post: ControlEndpoint) -> float:
    """How long a task waits for an answer while a newcomer says nothing."""
    with socket.create_connection(post.address) as mute, ControlClient(post) as task:
        mute.send(b"abc")
        began = time.monotonic()
        task.send(task_hello(0), REPORT)
        task.receive(ReportAck)
        return time.monotonic() - began


def test_a_guest_who_talks_nonsense_is_sent_away_and_the_others_stay(
    rehearsal: NoopConductor,
) -> None:
    with serving(rehearsal) as server, ControlClient(server.endpoint) as task:
        task.send(task_hello(0))
        with socket.create_connection(server.endpoint.address) as fool:
            fool.settimeout(50)
            answered, seals = answer_challenge(server.endpoint.secret, fool.recv(NONCE_BYTES))
            nonsense = seals.outgoing.encrypt(b"nonsense")
            fool.sendall(answered + len(nonsense).to_bytes(4, "big") + nonsense)
            assert fool.recv(1) == b""
        task.send(REPORT)
        task.receive(ReportAck)


def test_nothing_that_is_said_can_be_read_on_the_way(rehearsal: NoopConductor) -> None:
    """Client properties travel in the welcome: whoever listens must not get to know them."""
    heard = bytearray()
    with (
        serving(rehearsal) as server,
        overheard(server.endpoint, heard) as post,
        ControlClient(post) as task,
    ):
        task.send(task_hello(0))
        welcome = task.receive(Welcome)
    assert welcome.settings["source"] == {"bootstrap.servers": "127.0.0.1:1"}
    assert len(heard) > 100
    for hidden in (b"bootstrap", b"welcome", b"hello", server.endpoint.secret):
        assert hidden not in heard


def test_a_port_that_is_taken_is_named(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server, pytest.raises(DriverLost, match=str(server.endpoint.port)):
        ControlServer(rehearsal, tasks=1, epoch_s=1, bind="127.0.0.1", port=server.endpoint.port)


def test_epochs_are_counted_up_as_the_query_asks_for_them(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server, ControlClient(server.endpoint) as query:
        for number in (1, 2):
            query.send(RequestEpoch(finished_epoch=number - 1))
            assert query.receive(EpochAssignment) == EpochAssignment(number=number, tasks=2)
            assert server.epoch == number
        assert not server.is_idle


def test_after_the_finish_there_is_no_further_epoch(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server, ControlClient(server.endpoint) as query:
        query.send(RequestEpoch(finished_epoch=0))
        query.receive(EpochAssignment)
        server.stop_new_epochs()
        assert not server.is_idle, "the epoch is still under way"
        query.send(RequestEpoch(finished_epoch=1))
        assert query.receive(EpochAssignment) == EpochAssignment(number=1, tasks=2)
        assert server.is_idle


def test_without_tasks_there_is_no_epoch() -> None:
    with (
        serving(NoopConductor(job_without_partitions(0)), tasks=0) as server,
        ControlClient(server.endpoint) as query,
    ):
        query.send(RequestEpoch(finished_epoch=4))
        assert query.receive(EpochAssignment).number == 4


def test_another_number_of_tasks_ends_the_epoch_and_holds_from_the_next_on(
    rehearsal: NoopConductor,
) -> None:
    with (
        serving(rehearsal) as server,
        ControlClient(server.endpoint) as query,
        ControlClient(server.endpoint) as task,
    ):
        query.send(RequestEpoch(finished_epoch=0))
        query.receive(EpochAssignment)
        task.send(task_hello(0))
        task.receive(Welcome)
        server.set_task_count(2)
        server.set_task_count(5)
        task.receive(Drain)
        query.send(RequestEpoch(finished_epoch=1))
        assert query.receive(EpochAssignment) == EpochAssignment(number=2, tasks=5)
        assert rehearsal.counts["end_epoch"] == 1


def test_no_tasks_for_a_while_is_a_rest_and_not_the_end(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server, ControlClient(server.endpoint) as query:
        server.set_task_count(0)
        query.send(RequestEpoch(finished_epoch=3))
        assert query.receive(EpochAssignment).number == 3
        server.set_task_count(1)
        query.send(RequestEpoch(finished_epoch=3))
        assert query.receive(EpochAssignment) == EpochAssignment(number=4, tasks=1)
        server.stop_new_epochs()
        assert not server.is_idle, "an epoch is under way"


def test_an_epoch_ends_so_long_after_its_first_task_came(rehearsal: NoopConductor) -> None:
    with (
        serving(rehearsal, epoch_s=0.2) as server,
        ControlClient(server.endpoint) as query,
        ControlClient(server.endpoint) as task,
    ):
        query.send(RequestEpoch(finished_epoch=0))
        query.receive(EpochAssignment)
        time.sleep(0.4)
        assert rehearsal.counts["end_epoch"] == 0, "nobody has come yet"
        task.send(task_hello(0))
        task.receive(Drain)
        assert rehearsal.counts["end_epoch"] == 1


def test_the_first_epoch_is_short_once_all_its_tasks_are_there(rehearsal: NoopConductor) -> None:
    with serving(rehearsal, first_epoch_s=0.2) as server, ControlClient(server.endpoint) as query:
        for epoch in range(2):
            query.send(RequestEpoch(finished_epoch=epoch))
            query.receive(EpochAssignment)
            with ControlClient(server.endpoint) as task, ControlClient(server.endpoint) as other:
                task.send(task_hello(0))
                task.receive(Welcome)
                time.sleep(0.4)
                assert rehearsal.counts["end_epoch"] == epoch, "one of its tasks has not come yet"
                other.send(task_hello(1))
                if epoch == 0:
                    other.receive(Drain)
                else:
                    time.sleep(0.4)
                    assert rehearsal.counts["end_epoch"] == 1, "only the first one is short"


def test_a_task_that_comes_after_the_end_does_not_hold_up_the_next_epoch(
    rehearsal: NoopConductor,
) -> None:
    with (
        serving(rehearsal, epoch_s=0.2) as server,
        ControlClient(server.endpoint) as query,
        ControlClient(server.endpoint) as task,
        ControlClient(server.endpoint) as late,
    ):
        query.send(RequestEpoch(finished_epoch=0))
        query.receive(EpochAssignment)
        task.send(task_hello(0))
        task.receive(Drain)
        late.send(task_hello(1))
        late.receive(Drain)


def test_many_tasks_are_served_at_once(rehearsal: NoopConductor) -> None:
    with serving(rehearsal) as server:
        with ExitStack() as stack:
            tasks = [stack.enter_context(ControlClient(server.endpoint)) for _ in range(100)]
            for number, task in enumerate(tasks):
                task.send(task_hello(number), REPORT)
            for task in tasks:
                task.receive(ReportAck)
        wait_until(counts(rehearsal, "left", 100), "all to leave")


def test_the_secret_is_not_printed() -> None:
    post = ControlEndpoint(host="h", port=1, secret=b"hidden")
    assert "hidden" not in repr(post)
