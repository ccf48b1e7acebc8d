"""The transport sends and receives in parts, as the socket allows."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Iterator

import pytest

from sparkmirror.wire.batch.header import BytesLike
from sparkmirror.wire.net.transport import (
    KEEP_ALIVE_OPTIONS,
    LOW_WATERMARK_GROWS_BUFFER,
    MAX_BUFFERS_PER_CALL,
    PlaintextTransport,
    connect,
)
from tests.support.waiting import wait_until


@pytest.fixture
def pair() -> Iterator[tuple[PlaintextTransport, socket.socket]]:
    """A transport, which does not block, and the socket of the other side, which blocks."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
    ours.setblocking(False)
    theirs.settimeout(50)
    transport = PlaintextTransport(ours)
    yield transport, theirs
    transport.close()
    theirs.close()


def test_all_bytes_arrive_in_order_if_the_socket_accepts_few_at_a_time(
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


def test_a_partly_sent_buffer_is_not_copied(pair: tuple[PlaintextTransport, socket.socket]) -> None:
    transport, _ = pair
    large = bytes(1 << 22)
    queue: deque[BytesLike] = deque([large])
    transport.send(queue)
    (rest,) = queue
    assert isinstance(rest, memoryview)
    assert rest.obj is large
    assert len(rest) < len(large)


def test_receive_returns_0_without_data_and_raises_after_a_close(
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


def test_few_bytes_do_not_wake_a_selector_but_a_close_does() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    ours.setblocking(False)
    transport = PlaintextTransport(ours)
    transport.set_low_watermark(100_000)
    other.sendall(b"." * 10_000)
    assert not (LOW_WATERMARK_GROWS_BUFFER and is_readable(transport))
    other.sendall(b"." * 90_000)
    wait_until(lambda: is_readable(transport), "all bytes to arrive")
    received = bytearray(100_000)
    assert transport.receive_into(memoryview(received)) == len(received)
    other.sendall(b".")
    transport.set_low_watermark(1)
    wait_until(lambda: is_readable(transport), "a byte to arrive")
    transport.set_low_watermark(100_000)
    other.close()
    wait_until(lambda: is_readable(transport), "the close to arrive")
    transport.close()


def is_readable(transport: PlaintextTransport) -> bool:
    """Whether a selector reports the transport as readable now."""
    return bool(select.select([transport], [], [], 0)[0])


def test_connect_fails_at_once_after_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        connect("127.0.0.1", 9, None, time.monotonic() - 1)


def test_connect_tries_every_address_of_a_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        transport = connect("localhost", port, None, time.monotonic() + 50)
        assert transport.fileno() > 0
        transport.close()
        transport.close()


@pytest.mark.parametrize("name", [one for one in KEEP_ALIVE_OPTIONS if hasattr(socket, one)])
def test_an_idle_connection_sends_a_packet_before_a_load_balancer_forgets_it(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        transport = connect(host, port, None, time.monotonic() + 10)
        try:
            ours = socket.socket(fileno=transport.fileno())
            try:
                assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                option = getattr(socket, name)
                assert ours.getsockopt(socket.IPPROTO_TCP, option) == KEEP_ALIVE_OPTIONS[name]
            finally:
                ours.detach()
        finally:
            transport.close()
