"""Large and malformed requests, slow clients, many clients, a herder that hangs."""

from __future__ import annotations

import json
import logging
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from sparkmirror.rest.server_options import RestLimits, RestOptions
from tests.support.rest.blocking_herder import BlockingHerder
from tests.support.rest.rest_client import (
    JSON_HEADERS,
    RestClient,
    request_once,
    running_rest_server,
)
from tests.support.rest.scripted_herder import ScriptedHerder
from tests.support.waiting import wait_until

MAX_REQUESTS = 2


@contextmanager
def running_limited_server(limits: RestLimits) -> Iterator[str]:
    """A server whose herder hangs. A test lowers only the limit that it tests.

    On a slow computer another low limit could be reached first.
    """
    herder = BlockingHerder()
    with running_rest_server(herder, RestOptions(limits=limits, access_log=False)) as server:
        try:
            yield server.address
        finally:
            herder.release()


@pytest.fixture(scope="module")
def small_limits() -> Iterator[str]:
    """A server that accepts bodies of up to 1000 bytes."""
    with running_limited_server(RestLimits(max_body_bytes=1000)) as address:
        yield address


@pytest.fixture(scope="module")
def short_timeouts() -> Iterator[str]:
    """A server with short timeouts and two handler threads."""
    with running_limited_server(
        RestLimits(
            request_timeout_s=0.3, health_timeout_s=0.2, max_concurrent_requests=MAX_REQUESTS
        )
    ) as address:
        yield address


def send_raw(address: str, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """Send bytes, pause after each part, and read until the server closes the connection.

    A part that is sent after the server closed would discard the answer, so sending ends with it.
    """
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=50) as connection:
        for part in parts:
            connection.sendall(part)
            if select.select([connection], [], [], pause_s)[0]:
                break
        read = b""
        while chunk := connection.recv(65536):
            read += chunk
    return read


def error_message(answer: bytes) -> str:
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["message"])


@pytest.mark.parametrize("size", [1001, 5000, 100_000])
def test_a_body_that_is_too_large_is_refused(size: int, small_limits: str) -> None:
    client = RestClient(small_limits)
    answer = client.request("POST", "/connectors", b"x" * size, JSON_HEADERS)
    client.close()
    assert (answer.status, answer.message) == (
        413,
        "The body of the request is larger than 1000 bytes",
    )
    assert answer.headers["connection"] == "close"


def test_a_chunked_body_that_is_too_large_is_refused(small_limits: str) -> None:
    head = b"POST /connectors HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    answer = send_raw(small_limits, head + chunk * 2 + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_does_not_arrive_gets_408() -> None:
    head = b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
    with running_limited_server(RestLimits(body_timeout_s=0.3)) as address:
        answer = send_raw(address, head + b"{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert error_message(answer) == "The body of the request did not arrive within 0.3 s"


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_headers_that_do_not_arrive_get_408(sent: bytes) -> None:
    with running_limited_server(RestLimits(headers_timeout_s=0.3)) as address:
        answer = send_raw(address, sent)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert error_message(answer) == "The headers of the request did not arrive within 0.3 s"


def test_single_bytes_do_not_extend_the_timeout_for_headers() -> None:
    """The last byte is sent after 1.2 s: with another 2 s from then the answer takes 3.2 s."""
    with running_limited_server(RestLimits(headers_timeout_s=2)) as address:
        started = time.monotonic()
        answer = send_raw(address, b"G", b"E", b"T", b" ", pause_s=0.4)
        took_s = time.monotonic() - started
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert took_s < 3.1


def test_an_idle_connection_is_closed() -> None:
    with running_limited_server(RestLimits(keep_alive_s=1)) as address:
        started = time.monotonic()
        answer = send_raw(address, b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n")
        assert 0.9 < time.monotonic() - started < RestLimits().keep_alive_s
    assert answer.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client that uses TLS\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\x80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 70_000,
    ],
)
def test_bytes_that_are_not_http_get_400_in_json(sent: bytes, small_limits: str) -> None:
    answer = send_raw(small_limits, sent)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert "not valid HTTP" in error_message(answer)


@pytest.mark.parametrize(
    "path", ["/connectors", "/a//b"], ids=["that reads the body", "that does not read it"]
)
def test_a_body_that_is_not_http_logs_no_stack_trace_on_a_path(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode()
    herder = ScriptedHerder()
    herder.set_response(200, [])
    with running_rest_server(herder) as server:
        for _ in range(5):
            assert send_raw(server.address, sent).startswith(b"HTTP/1.1 ")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_kafka_client_on_the_rest_port_is_logged_as_one_line_that_says_so(
    small_limits: str, caplog: pytest.LogCaptureFixture
) -> None:
    api_versions = b"\x00\x00\x00\x14\x00\x12\x00\x03\x00\x00\x00\x01\x00\x05kafka\x00\x00\r\n\r\n"
    with caplog.at_level(logging.WARNING):
        send_raw(small_limits, api_versions)
        send_raw(small_limits, api_versions)
    first, second = caplog.messages
    assert "the client at 127.0.0.1 sent bytes that are not HTTP" in first
    assert "its bootstrap.servers names this REST port" in first
    assert first == second, "so that the repeated line is counted"


def test_a_client_that_expects_100_continue_gets_it(address: str) -> None:
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=50) as connection:
        head = b"POST /connectors HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        connection.sendall(head + b"Content-Length: 2\r\nContent-Type: application/json\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"{}")
        assert connection.recv(1000).startswith(b"HTTP/1.1 500 ")


def test_a_client_that_expects_100_continue_gets_413_before_a_body_that_is_too_large(
    small_limits: str,
) -> None:
    head = b"POST /connectors HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
    answer = send_raw(small_limits, head + b"Content-Length: 1001\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_herder_that_hangs_does_not_block_the_server(short_timeouts: str) -> None:
    answer = request_once(short_timeouts, "GET", "/connectors")
    assert (answer.status, answer.message) == (
        500,
        "Request timed out. The worker has not finished GET /connectors within 0.3 s.",
    )
    health = request_once(short_timeouts, "GET", "/health")
    assert health.status == 500
    assert health.json == {
        "status": "unhealthy",
        "message": "Worker was unable to handle this request and may be unable to handle other "
        "requests. The worker has not finished GET /health within 0.2 s.",
    }
    assert request_once(short_timeouts, "GET", "/nope").status == 404


def test_calls_that_hang_do_not_accumulate_threads(short_timeouts: str) -> None:
    def status(_: int) -> int:
        return request_once(short_timeouts, "GET", "/connectors").status

    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(status, range(8))) == {500}

    def count_handler_threads() -> int:
        return sum(each.name == "rest" for each in threading.enumerate())

    wait_until(
        lambda: count_handler_threads() <= MAX_REQUESTS + 2,
        "handler threads of other servers to end",
    )


def test_a_read_from_memory_is_answered_while_every_thread_is_busy() -> None:
    herder = BlockingHerder()
    limits = RestLimits(request_timeout_s=0.5, max_concurrent_requests=1)
    options = RestOptions(limits=limits, access_log=False)
    with running_rest_server(herder, options) as server, ThreadPoolExecutor(1) as clients:
        hanging = clients.submit(request_once, server.address, "GET", "/connectors")
        assert herder.pending_calls.acquire(timeout=30)
        path = "/connectors/x/tasks/0/status"
        assert request_once(server.address, "GET", path).status == 500
        herder.is_read = True
        answer = request_once(server.address, "GET", path)
        assert (answer.status, answer.json["state"]) == (200, "RUNNING")
        assert request_once(server.address, "GET", "/connectors/x/tasks").status == 200
        unexpected = request_once(server.address, "GET", "/connectors/x")
        assert unexpected.message == "KeyError: the worker's log says more about it"
        herder.release()
        assert hanging.result().status == 500


def test_an_unexpected_error_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with running_rest_server(BlockingHerder()) as server:
        answer = request_once(server.address, "GET", "/connectors/x")
    assert (answer.status, answer.message) == (
        500,
        "KeyError: the worker's log says more about it",
    )
    assert "a secret of the implementation" in caplog.text
    assert "GET /connectors/x" in caplog.text


def test_two_hundred_clients_are_all_answered(address: str, herder: ScriptedHerder) -> None:
    herder.set_response(200, ["a", "b"])

    barrier = threading.Barrier(200)

    def send_request(_: int) -> Any:
        barrier.wait(50)
        return request_once(address, "GET", "/connectors").json

    with ThreadPoolExecutor(200) as clients:
        assert list(clients.map(send_request, range(200))) == [["a", "b"]] * 200


def test_the_names_of_headers_keep_their_case(address: str, herder: ScriptedHerder) -> None:
    herder.set_response(201, {"name": "x", "config": {"name": "x"}, "tasks": [], "type": "source"})
    head = b"PUT /connectors/x/config HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    body = b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    lines = send_raw(address, head + body).split(b"\r\n")
    assert b"Location: http://x/connectors/x" in lines
    assert b"Content-Type: application/json" in lines
    assert [line[:16] for line in lines if line.startswith(b"Content-Length: ")]


def test_a_connection_is_kept_for_many_requests(client: RestClient, herder: ScriptedHerder) -> None:
    herder.set_response(200, [])
    local_ports = set()
    for _ in range(5):
        assert client.request("GET", "/connectors").status == 200
        local_ports.add(client.local_port)
    assert len(local_ports) == 1


def test_a_kept_connection_does_not_wait_for_a_tcp_acknowledgement(
    client: RestClient, herder: ScriptedHerder
) -> None:
    herder.set_response(200, [])
    durations = []
    for _ in range(40):
        started = time.monotonic()
        client.request("GET", "/connectors")
        durations.append(time.monotonic() - started)
    # A delayed acknowledgement takes 40 ms, but not on the first requests of a connection.
    assert min(durations[20:]) < 0.03


def test_a_client_that_disconnects_does_not_disturb_others(
    address: str, herder: ScriptedHerder
) -> None:
    url = urlsplit(address)
    for sent in (b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{", b"GE"):
        with socket.create_connection((url.hostname, url.port)) as connection:
            connection.sendall(sent)
    herder.set_response(200, [])
    assert request_once(address, "GET", "/connectors").status == 200
