"""Large and malformed requests, slow callers, many callers, a worker that hangs."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from sparkmirror.rest.options import RestLimits, RestOptions
from tests.support.rest.blocking_herder import BlockingHerder
from tests.support.rest.rest_client import (
    JSON_HEADERS,
    RestClient,
    request_once,
    running_rest_server,
)
from tests.support.rest.scripted_herder import ScriptedHerder
from tests.support.waiting import wait_until

CALLS = 2


@contextmanager
def limited(limits: RestLimits) -> Iterator[str]:
    """A server before a worker that hangs; a test is strict in what it is about, in nothing else.

    Otherwise a slow computer would come up against another limit before.
    """
    worker = BlockingHerder()
    with running_rest_server(worker, RestOptions(limits=limits, access_log=False)) as server:
        try:
            yield server.address
        finally:
            worker.release()


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    """Takes small bodies only."""
    with limited(RestLimits(max_body_bytes=1000)) as address:
        yield address


@pytest.fixture(scope="module")
def hasty() -> Iterator[str]:
    """Waits for a worker that hangs, but not for long."""
    with limited(
        RestLimits(request_timeout_s=0.3, health_timeout_s=0.2, max_concurrent_requests=CALLS)
    ) as address:
        yield address


def raw(address: str, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """Send bytes as they are, wait after each part, and read until the server hangs up."""
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=50) as plug:
        for part in parts:
            plug.sendall(part)
            time.sleep(pause_s)
        read = b""
        while chunk := plug.recv(65536):
            read += chunk
    return read


def message_of(answer: bytes) -> str:
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["message"])


@pytest.mark.parametrize("size", [1001, 5000, 100_000])
def test_a_body_that_is_too_large_is_refused(size: int, small: str) -> None:
    client = RestClient(small)
    answer = client.request("POST", "/connectors", b"x" * size, JSON_HEADERS)
    client.close()
    assert (answer.status, answer.message) == (
        413,
        "The body of the request is larger than 1000 bytes",
    )
    assert answer.headers["connection"] == "close"


def test_a_body_whose_size_was_not_announced_is_measured(small: str) -> None:
    head = b"POST /connectors HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    answer = raw(small, head + chunk * 2 + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    head = b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
    with limited(RestLimits(body_timeout_s=0.3)) as address:
        answer = raw(address, head + b"{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert message_of(answer) == "The body of the request did not arrive within 0.3 s"


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_headers_that_do_not_arrive_are_given_up(sent: bytes) -> None:
    with limited(RestLimits(headers_timeout_s=0.3)) as address:
        answer = raw(address, sent)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert message_of(answer) == "The headers of the request did not arrive within 0.3 s"


def test_a_byte_now_and_then_does_not_keep_a_connection() -> None:
    with limited(RestLimits(headers_timeout_s=0.3)) as address:
        answer = raw(address, b"G", b"E", b"T", b" ", pause_s=0.1)
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_is_closed() -> None:
    with limited(RestLimits(keep_alive_s=1)) as address:
        began = time.monotonic()
        answer = raw(address, b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n")
        assert 0.9 < time.monotonic() - began < RestLimits().keep_alive_s
    assert answer.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client that speaks TLS\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\x80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 70_000,
    ],
)
def test_what_is_no_http_is_refused_in_json(sent: bytes, small: str) -> None:
    answer = raw(small, sent)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert "not valid HTTP" in message_of(answer)


def test_a_client_that_asks_first_may_send_its_body(address: str) -> None:
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=50) as plug:
        head = b"POST /connectors HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        plug.sendall(head + b"Content-Length: 2\r\nContent-Type: application/json\r\n\r\n")
        assert plug.recv(100).startswith(b"HTTP/1.1 100 ")
        plug.sendall(b"{}")
        assert plug.recv(1000).startswith(b"HTTP/1.1 500 ")


def test_a_client_that_asks_first_is_spared_a_body_that_is_too_large(small: str) -> None:
    head = b"POST /connectors HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
    answer = raw(small, head + b"Content-Length: 1001\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_worker_that_hangs_does_not_hang_the_server(hasty: str) -> None:
    answer = request_once(hasty, "GET", "/connectors")
    assert (answer.status, answer.message) == (
        500,
        "Request timed out. The worker has not finished GET /connectors within 0.3 s.",
    )
    health = request_once(hasty, "GET", "/health")
    assert health.status == 500
    assert health.json == {
        "status": "unhealthy",
        "message": "Worker was unable to handle this request and may be unable to handle other "
        "requests. The worker has not finished GET /health within 0.2 s.",
    }
    assert request_once(hasty, "GET", "/nope").status == 404


def test_calls_that_hang_do_not_pile_up(hasty: str) -> None:
    def status(_: int) -> int:
        return request_once(hasty, "GET", "/connectors").status

    with ThreadPoolExecutor(8) as callers:
        assert set(callers.map(status, range(8))) == {500}

    def hanging() -> int:
        return sum(each.name == "rest" for each in threading.enumerate())

    wait_until(lambda: hanging() <= CALLS + 2, "those of other servers, but for the shared one")


def test_an_unexpected_error_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with running_rest_server(BlockingHerder()) as server:
        answer = request_once(server.address, "GET", "/connectors/x")
    assert (answer.status, answer.message) == (
        500,
        "KeyError: the worker's log says more about it",
    )
    assert "a secret of the implementation" in caplog.text
    assert "GET /connectors/x" in caplog.text


def test_two_hundred_callers_are_all_answered(address: str, herding: ScriptedHerder) -> None:
    herding.set_response(200, ["a", "b"])

    together = threading.Barrier(200)

    def ask(_: int) -> Any:
        together.wait(50)
        return request_once(address, "GET", "/connectors").json

    with ThreadPoolExecutor(200) as callers:
        assert list(callers.map(ask, range(200))) == [["a", "b"]] * 200


def test_headers_are_spelt_as_scripts_look_for_them(address: str, herding: ScriptedHerder) -> None:
    herding.set_response(201, {"name": "x", "config": {"name": "x"}, "tasks": [], "type": "source"})
    head = b"PUT /connectors/x/config HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    body = b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    lines = raw(address, head + body).split(b"\r\n")
    assert b"Location: http://x/connectors/x" in lines
    assert b"Content-Type: application/json" in lines
    assert [line[:16] for line in lines if line.startswith(b"Content-Length: ")]


def test_a_connection_is_kept_for_many_requests(
    client: RestClient, herding: ScriptedHerder
) -> None:
    herding.set_response(200, [])
    plugs = set()
    for _ in range(5):
        assert client.request("GET", "/connectors").status == 200
        plugs.add(client.local_port)
    assert len(plugs) == 1


def test_a_kept_connection_waits_for_no_acknowledgement(
    client: RestClient, herding: ScriptedHerder
) -> None:
    herding.set_response(200, [])
    took = []
    for _ in range(40):
        began = time.monotonic()
        client.request("GET", "/connectors")
        took.append(time.monotonic() - began)
    # 40 ms is what the other side's system waits before it confirms, but not from the beginning.
    assert min(took[20:]) < 0.03


def test_a_caller_that_hangs_up_disturbs_nobody(address: str, herding: ScriptedHerder) -> None:
    url = urlsplit(address)
    for sent in (b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{", b"GE"):
        with socket.create_connection((url.hostname, url.port)) as plug:
            plug.sendall(sent)
    herding.set_response(200, [])
    assert request_once(address, "GET", "/connectors").status == 200
