"""The long line: bytes arrive late, in order, and no faster than the receiver's window allows."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from bench.delay_proxy import Direction, receive_window

TRIP_S = 0.05


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket, socket.socket]]:
    """Two ends with a line of TRIP_S between them, and the line's own end before the receiver."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
        address = server.getsockname()
        inward = socket.create_connection(address)
        sender, _ = server.accept()
        outward = socket.create_connection(address)
        receiver, _ = server.accept()
    Direction(inward, outward, TRIP_S).start()
    yield sender, receiver, outward
    for end in (sender, receiver, inward, outward):
        end.close()


def test_what_is_sent_arrives_after_one_trip(
    line: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    sender, receiver, _ = line
    begun = time.monotonic()
    sender.sendall(b"one")
    assert receiver.recv(10) == b"one"
    assert TRIP_S <= time.monotonic() - begun < TRIP_S + 30


def test_one_window_is_under_way_per_round_trip(
    line: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    sender, receiver, outward = line
    window = receive_window(outward)
    sent = bytes(range(256)) * (4 * window // 256)
    begun = time.monotonic()
    writing = threading.Thread(target=sender.sendall, args=(sent,))
    writing.start()
    got = bytearray()
    while len(got) < len(sent):
        got += receiver.recv(1 << 16)
    took_s = time.monotonic() - begun
    writing.join()
    assert bytes(got) == sent
    assert took_s >= 2 * 2 * TRIP_S, "four windows need three round trips and a half, or nearly"


def test_the_end_of_one_side_reaches_the_other(
    line: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    sender, receiver, _ = line
    sender.sendall(b"last words")
    sender.shutdown(socket.SHUT_WR)
    got = bytearray()
    while chunk := receiver.recv(100):
        got += chunk
    assert got == b"last words"
