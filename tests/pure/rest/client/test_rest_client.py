"""Requests to other workers: what is sent, and the errors that name the worker."""

from __future__ import annotations

import socket

import pytest

from sparkmirror.errors import RequestFailed
from sparkmirror.rest.client.rest_client import RestClient, WorkerUnreachable
from tests.support.reserved_port import reserved_port
from tests.support.rest.rest_client import running_rest_server, server_that_answers
from tests.support.rest.scripted_herder import ScriptedHerder


def test_a_response_has_status_headers_and_content_whatever_the_status() -> None:
    herder = ScriptedHerder()
    herder.set_response(404, {"error_code": 404, "message": "Connector x not found"})
    with running_rest_server(herder) as server:
        answer = RestClient().send(
            "PUT", f"{server.address}/connectors/x/pause?a=b", {}, timeout_s=50
        )
    assert (answer.status, answer.headers["content-type"]) == (404, "application/json")
    assert b"Connector x not found" in answer.content


def test_a_worker_without_a_listener_has_not_received_the_request() -> None:
    with reserved_port() as port:
        address = f"http://127.0.0.1:{port}"
        with pytest.raises(WorkerUnreachable, match=f"^no connection to {address}: "):
            RestClient().send("GET", f"{address}/", {}, timeout_s=50)


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n"])
def test_a_worker_that_breaks_off_is_named(answer: bytes) -> None:
    with (
        server_that_answers(answer) as address,
        pytest.raises(RequestFailed, match=f"^the worker at {address} did not answer GET /x"),
    ):
        RestClient().send("GET", f"{address}/x", {}, timeout_s=50)


def test_a_silent_worker_is_given_up_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(RequestFailed, match="timed out"):
            RestClient().send("GET", f"{address}/x", {}, timeout_s=0.1)
