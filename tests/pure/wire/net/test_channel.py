"""A channel delivers responses whole and in order, however the network cuts them."""

from __future__ import annotations

import socket
import struct
import time

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffer_pool import BufferPool, MemoryBudget, ResponseFrame
from sparkmirror.wire.net.channel import READ_AHEAD_BYTES, Channel
from sparkmirror.wire.net.endpoint_errors import Endpoint
from sparkmirror.wire.net.transport import PlaintextTransport
from sparkmirror.wire.protocol.request import ClientRequest

AHEAD = READ_AHEAD_BYTES
SIZES = st.sampled_from([0, 1, 5, 100, AHEAD - 12, AHEAD - 8, AHEAD - 4, AHEAD, 20_000, 70_000])
CUTS = st.sampled_from([1, 2, 3, 4, 5, 7, 100, AHEAD - 1, AHEAD, AHEAD + 1, 30_000, 100_000])


def content_of(frame: ResponseFrame, at: int) -> bytes:
    return bytes(frame.view[at:])


REQUEST = ClientRequest(
    name="Any",
    api_key=3,
    version=0,
    body=(),
    decode=content_of,
    flexible=False,
)


@given(st.lists(SIZES, min_size=1, max_size=20), st.lists(CUTS, min_size=1, max_size=20))
def test_responses_arrive_whole_and_in_order_however_they_are_cut(
    sizes: list[int], cuts: list[int]
) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    endpoint = Endpoint(
        cluster="source", address=Address("localhost", 1), security_protocol="PLAINTEXT"
    )
    budget = MemoryBudget(1 << 30)
    channel = Channel(endpoint, PlaintextTransport(ours), BufferPool(budget), "client")
    received: list[bytes] = []
    contents = [bytes([number]) * size for number, size in enumerate(sizes)]
    stream = b""
    for number, content in enumerate(contents, 1):
        channel.send(REQUEST, on_response=received.append, deadline=time.monotonic() + 100)
        stream += struct.pack(">ii", len(content) + 4, number) + content
    at, turn = 0, 0
    while at < len(stream):
        part = stream[at : at + cuts[turn % len(cuts)]]
        theirs.sendall(part)
        channel.on_readable()
        at, turn = at + len(part), turn + 1
    assert received == contents
    assert budget.used == 0
    channel.close()
    theirs.close()
