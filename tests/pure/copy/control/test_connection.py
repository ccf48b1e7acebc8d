"""A control connection delivers every message, even if both ends send while one closes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.messages import ControlMessage, ProgressReport, ReportAck, TaskDone
from tests.support.copy.control_client import handshake_keys

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Two ends of a connection: a large send buffer, a small receive buffer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        near = socket.socket()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 << 20)
        near.connect(server.getsockname())
        far, _ = server.accept()
    with near, far:
        yield near, far


def connect(
    ends: Ends, received: list[ControlMessage]
) -> tuple[ControlConnection, ControlConnection]:
    """Return a task's end that ignores messages, and a driver's end that collects them."""
    keys = handshake_keys()
    near = ControlConnection(ends[0], lambda _: None, keys.task_ciphers())
    return near, ControlConnection(ends[1], received.append, keys.driver_ciphers())


def receive_all(connection: ControlConnection) -> None:
    """Receive until the other end closes."""
    while True:
        try:
            connection.on_readable()
        except ControlConnectionLost:
            return


def test_a_graceful_close_delivers_every_message(ends: Ends) -> None:
    received: list[ControlMessage] = []
    near, far = connect(ends, received)
    last = ProgressReport(
        progress={}, runs=[("a-topic-0", number, number, 1) for number in range(20_000)]
    )
    near.send(last)
    near.send(TaskDone())
    assert not near.wants_write, "everything is in the send buffer"
    far.send(ReportAck())

    def close() -> None:
        near.close_gracefully()
        near.close()

    closing = threading.Thread(target=close)
    closing.start()
    closing.join(timeout=0.2)
    assert closing.is_alive(), "it waits until the other end has received everything"
    receive_all(far)
    closing.join()
    assert received == [last, TaskDone()]


def test_a_connection_that_the_other_end_closed_is_closed(ends: Ends) -> None:
    near, far = connect(ends, [])
    near.close()
    receive_all(far)
    assert far.is_closed
    with pytest.raises(ControlConnectionLost):
        far.send(ReportAck())
