"""The delay proxy forwards bytes late, in order, and one receive window per round trip."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from bench.delay_proxy import Direction, receive_window

DELAY_S = 0.05


@pytest.fixture
def delayed_sockets() -> Iterator[tuple[socket.socket, socket.socket, socket.socket]]:
    """A sender, a receiver behind the proxy, and the socket of the proxy to the receiver."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
        address = server.getsockname()
        proxy_in = socket.create_connection(address)
        sender, _ = server.accept()
        proxy_out = socket.create_connection(address)
        receiver, _ = server.accept()
    Direction(proxy_in, proxy_out, DELAY_S).start()
    yield sender, receiver, proxy_out
    for end in (sender, receiver, proxy_in, proxy_out):
        end.close()


def test_bytes_arrive_after_the_delay(
    delayed_sockets: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    sender, receiver, _ = delayed_sockets
    started = time.monotonic()
    sender.sendall(b"one")
    assert receiver.recv(10) == b"one"
    assert DELAY_S <= time.monotonic() - started < DELAY_S + 30


def test_one_receive_window_arrives_per_round_trip(
    delayed_sockets: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    sender, receiver, proxy_out = delayed_sockets
    window = receive_window(proxy_out)
    sent = bytes(range(256)) * (4 * window // 256)
    started = time.monotonic()
    writing = threading.Thread(target=sender.sendall, args=(sent,))
    writing.start()
    got = bytearray()
    while len(got) < len(sent):
        got += receiver.recv(1 << 16)
    took_s = time.monotonic() - started
    writing.join()
    assert bytes(got) == sent
    assert took_s >= 2 * 2 * DELAY_S, "four windows need about three and a half round trips"


def test_the_proxy_forwards_a_shutdown(
    delayed_sockets: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    sender, receiver, _ = delayed_sockets
    sender.sendall(b"last bytes")
    sender.shutdown(socket.SHUT_WR)
    got = bytearray()
    while chunk := receiver.recv(100):
        got += chunk
    assert got == b"last bytes"
