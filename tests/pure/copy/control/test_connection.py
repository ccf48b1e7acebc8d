"""A control channel's end: what was said is heard, even if both ends talk when one hangs up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.encryption import CipherPair
from sparkmirror.copy.control.messages import ControlMessage, ProgressReport, ReportAck, TaskDone

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Two ends of a connection: much fits into what is on its way, little into the far end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        near = socket.socket()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 << 20)
        near.connect(server.getsockname())
        far, _ = server.accept()
    with near, far:
        yield near, far


def linked(ends: Ends, heard: list[ControlMessage]) -> tuple[ControlConnection, ControlConnection]:
    """A task's end that listens to nobody, and a driver's that keeps what it hears."""
    near = ControlConnection(ends[0], lambda _: None, CipherPair.for_task(b"secret", b"halves"))
    return near, ControlConnection(
        ends[1], heard.append, CipherPair.for_driver(b"secret", b"halves")
    )


def listen(link: ControlConnection) -> None:
    """Take in everything until the other end hangs up."""
    while True:
        try:
            link.on_readable()
        except ControlConnectionLost:
            return


def test_whoever_finishes_is_heard_to_the_end(ends: Ends) -> None:
    heard: list[ControlMessage] = []
    near, far = linked(ends, heard)
    last = ProgressReport(
        progress={}, runs=[("a-topic-0", number, number, 1) for number in range(20_000)]
    )
    near.send(last)
    near.send(TaskDone())
    assert not near.wants_write, "it is all on its way"
    far.send(ReportAck())

    def leave() -> None:
        near.close_gracefully()
        near.close()

    leaving = threading.Thread(target=leave)
    leaving.start()
    leaving.join(timeout=0.2)
    assert leaving.is_alive(), "it waits until it was heard"
    listen(far)
    leaving.join()
    assert heard == [last, TaskDone()]


def test_a_link_that_was_lost_says_so_once_and_is_closed(ends: Ends) -> None:
    near, far = linked(ends, [])
    near.close()
    listen(far)
    assert far.is_closed
    with pytest.raises(ControlConnectionLost):
        far.send(ReportAck())
