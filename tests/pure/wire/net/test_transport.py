"""Sockets that take and give less than one would like."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Iterator

import pytest

from sparkmirror.wire.batch.header import BytesLike
from sparkmirror.wire.net.transport import (
    LOW_WATERMARK_GROWS_BUFFER,
    MAX_BUFFERS_PER_CALL,
    PlaintextTransport,
    connect,
)
from tests.support.waiting import wait_until


@pytest.fixture
def pair() -> Iterator[tuple[PlaintextTransport, socket.socket]]:
    """Our end, which does not block, and theirs, which does."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
    ours.setblocking(False)
    theirs.settimeout(50)
    transport = PlaintextTransport(ours)
    yield transport, theirs
    transport.close()
    theirs.close()


def test_everything_arrives_in_order_however_little_the_socket_takes(
    pair: tuple[PlaintextTransport, socket.socket],
) -> None:
    transport, theirs = pair
    parts: list[BytesLike] = [
        bytes([n % 251]) * (n * 7 % 3000 + 1) for n in range(3 * MAX_BUFFERS_PER_CALL)
    ]
    queue = deque(parts)
    received = bytearray()
    rounds = 0
    while queue:
        transport.send(queue)
        received += theirs.recv(1 << 20)
        rounds += 1
    theirs.settimeout(5)
    while len(received) < sum(map(len, parts)):
        received += theirs.recv(1 << 20)
    assert bytes(received) == b"".join(parts)
    assert rounds > 10


def test_a_buffer_cut_in_two_is_not_copied(pair: tuple[PlaintextTransport, socket.socket]) -> None:
    transport, _ = pair
    large = bytes(1 << 22)
    queue: deque[BytesLike] = deque([large])
    transport.send(queue)
    (rest,) = queue
    assert isinstance(rest, memoryview)
    assert rest.obj is large
    assert len(rest) < len(large)


def test_nothing_there_and_the_end_are_told_apart(
    pair: tuple[PlaintextTransport, socket.socket],
) -> None:
    transport, theirs = pair
    view = memoryview(bytearray(10))
    assert transport.receive_into(view) == 0
    theirs.sendall(b"abc")
    assert transport.receive_into(view) == 3
    theirs.close()
    with pytest.raises(ConnectionResetError, match="closed the connection"):
        transport.receive_into(view)


def test_little_of_much_does_not_wake_but_the_end_does() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    ours.setblocking(False)
    transport = PlaintextTransport(ours)
    transport.set_low_watermark(100_000)
    other.sendall(b"." * 10_000)
    assert not (LOW_WATERMARK_GROWS_BUFFER and is_readable(transport))
    other.sendall(b"." * 90_000)
    wait_until(lambda: is_readable(transport), "all of it to be there")
    received = bytearray(100_000)
    assert transport.receive_into(memoryview(received)) == len(received)
    other.sendall(b".")
    transport.set_low_watermark(1)
    wait_until(lambda: is_readable(transport), "a byte to be there")
    transport.set_low_watermark(100_000)
    other.close()
    wait_until(lambda: is_readable(transport), "the end to be there")
    transport.close()


def is_readable(transport: PlaintextTransport) -> bool:
    """Whether a selector would say so now."""
    return bool(select.select([transport], [], [], 0)[0])


def test_a_deadline_that_has_passed_is_not_waited_for() -> None:
    with pytest.raises(TimeoutError):
        connect("127.0.0.1", 9, None, time.monotonic() - 1)


def test_every_address_of_a_name_is_tried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        transport = connect("localhost", port, None, time.monotonic() + 50)
        assert transport.fileno() > 0
        transport.close()
        transport.close()
