"""The fake broker sends its prepared replies."""

from __future__ import annotations

import socket
import struct
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataResponse

from tests.support.kafka.fake_broker import (
    FakeBroker,
    Reply,
    api_versions_reply,
    close_connection,
    no_reply,
    raw_reply,
    response_reply,
    truncated_reply,
)
from tests.support.waiting import wait_until


def decode(kind: Any, body: bytes, version: int) -> Any:
    return kind.decode(body, version=version)


def send_request(sock: socket.socket, api_key: int, version: int, correlation_id: int) -> None:
    head = struct.pack(">hhih", api_key, version, correlation_id, 2) + b"me"
    sock.sendall(struct.pack(">i", len(head) + 3) + head + b"abc")


def test_a_request_is_received_whole_and_answered_in_its_version() -> None:
    metadata = MetadataResponse(brokers=[], topics=[], cluster_id="c", controller_id=4)
    with (
        FakeBroker([response_reply(metadata)]) as broker,
        socket.create_connection(broker.address) as sock,
    ):
        send_request(sock, 18, 0, 7)
        size, correlation_id = struct.unpack(">ii", sock.recv(8, socket.MSG_WAITALL))
        answer = decode(ApiVersionsResponse, sock.recv(size - 4, socket.MSG_WAITALL), version=0)
        assert correlation_id == 7
        assert {key.api_key for key in answer.api_keys} >= {0, 1, 3, 18}
        send_request(sock, 3, 9, 8)
        size, correlation_id, tags = struct.unpack(">iib", sock.recv(9, socket.MSG_WAITALL))
        body = sock.recv(size - 5, socket.MSG_WAITALL)
        assert (correlation_id, tags) == (8, 0)
        assert decode(MetadataResponse, body, version=9).controller_id == 4
    assert [(h.api_key, h.version, h.client_id, h.body) for h in broker.requests] == [
        (18, 0, "me", b"abc"),
        (3, 9, "me", b"abc"),
    ]


def test_raw_bytes_are_sent_unchanged() -> None:
    with (
        FakeBroker([raw_reply(b"\x00nonsense")], sends_api_versions=False) as broker,
        socket.create_connection(broker.address) as sock,
    ):
        send_request(sock, 18, 0, 1)
        assert sock.recv(100) == b"\x00nonsense"


@pytest.mark.parametrize(
    ("reply", "sent"),
    [(truncated_reply(raw_reply(b"12345678")), b"1234"), (close_connection, b"")],
    ids=["half", "nothing"],
)
def test_a_reply_can_close_the_connection_in_the_middle_of_a_response(
    reply: Reply, sent: bytes
) -> None:
    with (
        FakeBroker([reply], sends_api_versions=False) as broker,
        socket.create_connection(broker.address) as sock,
    ):
        send_request(sock, 18, 0, 1)
        assert sock.recv(8, socket.MSG_WAITALL) == sent
        assert sock.recv(1) == b""


def test_a_broker_without_replies_sends_nothing() -> None:
    with (
        FakeBroker([no_reply], sends_api_versions=False) as broker,
        socket.create_connection(broker.address) as sock,
    ):
        send_request(sock, 18, 0, 1)
        send_request(sock, 18, 0, 2)
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        wait_until(lambda: broker.api_keys() == [18, 18], "both to be received")


def test_a_reply_can_have_a_wrong_correlation_id() -> None:
    reply = response_reply(ApiVersionsResponse(error_code=0, api_keys=[]), correlation_off_by=5)
    with (
        FakeBroker([reply], sends_api_versions=False) as broker,
        socket.create_connection(broker.address) as sock,
    ):
        send_request(sock, 18, 0, 1)
        assert struct.unpack(">ii", sock.recv(8, socket.MSG_WAITALL))[1] == 6


def test_the_api_versions_reply_has_the_given_ranges() -> None:
    with (
        FakeBroker([api_versions_reply({3: (7, 9)})], sends_api_versions=False) as broker,
        socket.create_connection(broker.address) as sock,
    ):
        send_request(sock, ApiVersionsRequest.API_KEY, 0, 1)
        body = sock.recv(1000)[8:]
        (key,) = decode(ApiVersionsResponse, body, version=0).api_keys
        assert (key.api_key, key.min_version, key.max_version) == (3, 7, 9)
