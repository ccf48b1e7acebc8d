"""Basic authentication: which credentials are accepted, and which files are refused."""

from __future__ import annotations

import base64
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.rest.authentication.basic_auth import (
    BasicAuthUsers,
    load_users_from_jaas,
    load_users_from_properties,
)
from sparkmirror.rest.server_options import RestLimits, RestOptions
from tests.support.rest.rest_client import running_rest_client, running_rest_server
from tests.support.rest.scripted_herder import ScriptedHerder

MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
USERS = BasicAuthUsers({"alice": Password("s3cret"), "bob": Password("")})


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (basic("alice:s3cret"), "alice"),
        (basic("alice:s3cret").replace("Basic", "bASIC"), "alice"),
        (basic("bob:"), "bob"),
        (basic("alice:wrong"), None),
        (basic("alice:"), None),
        (basic("carol:"), None),
        (basic(":"), None),
        (basic("alice"), None),
        ("Basic alice:s3cret", None),
        ("Basic " + base64.b64encode(b"\xff:\xff").decode(), None),
        ("Basic YWxpY2U6\xffczNjcmV0", None),
        ("Bearer x", None),
        ("", None),
        (None, None),
    ],
)
def test_credentials_are_checked(header: str | None, name: str | None) -> None:
    assert USERS.authenticate(header) == name


def test_the_users_are_not_shown() -> None:
    assert "alice" not in repr(USERS)
    assert "s3cret" not in repr(USERS)


def test_users_are_read_from_where_java_reads_them(tmp_path: Path) -> None:
    users = tmp_path / "users.properties"
    users.write_text("alice: s3cret\ndave=x=y\n")
    jaas = tmp_path / "jaas.conf"
    section = f'KafkaConnect {{\n  {MODULE} required\n  file="{users}";\n}};\n'
    jaas.write_text("KafkaClient { a.B required; };\n" + section)
    read = load_users_from_jaas(jaas)
    assert read.authenticate(basic("alice:s3cret")) == "alice"
    assert read.authenticate(basic("dave:x=y")) == "dave"


@pytest.mark.parametrize(
    "text", ["", "KafkaClient { a.B required; };", "KafkaConnect { a.B required; };"]
)
def test_a_jaas_file_that_names_no_users_is_refused(text: str, tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(text)
    with pytest.raises(ConfigError, match=r"rest\.extension\.classes"):
        load_users_from_jaas(jaas)


def test_a_missing_file_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"jaas\.conf"):
        load_users_from_jaas(tmp_path / "jaas.conf")
    with pytest.raises(ConfigError, match=r"users\.properties"):
        load_users_from_properties(tmp_path / "users.properties")


def test_an_empty_file_of_users_is_refused(tmp_path: Path) -> None:
    users = tmp_path / "users.properties"
    users.write_text("# no user\n")
    with pytest.raises(ConfigError, match="is empty; add at least one"):
        load_users_from_properties(users)


def test_a_request_without_credentials_gets_401_and_does_not_reach_the_herder() -> None:
    herder = ScriptedHerder()
    with running_rest_client(herder, RestOptions(users=USERS, access_log=False)) as client:
        herder.set_response(200, [])
        for path in ("/connectors", "/", "/health", "/nope", "/admin/loggers"):
            answer = client.request("GET", path)
            assert (answer.status, answer.content) == (401, b"User cannot access the resource.")
            assert answer.headers["content-type"] == "text/plain"
            assert "www-authenticate" not in answer.headers
        assert herder.calls == []
        authorized = {"Authorization": basic("alice:s3cret")}
        assert client.request("GET", "/connectors", headers=authorized).json == []


POST = b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"


@contextmanager
def connection_to_server_with_users(
    herder: ScriptedHerder, limits: RestLimits
) -> Iterator[socket.socket]:
    options = RestOptions(users=USERS, limits=limits, access_log=False)
    with running_rest_server(herder, options) as server:
        url = urlsplit(server.address)
        with socket.create_connection((url.hostname, url.port), timeout=50) as connection:
            yield connection


def read_response(connection: socket.socket, ending: bytes) -> bytes:
    read = b""
    while not read.endswith(ending):
        chunk = connection.recv(1000)
        assert chunk, read
        read += chunk
    return read


def test_401_is_sent_before_the_body_arrives_and_the_connection_serves_the_next_request() -> None:
    herder = ScriptedHerder()
    herder.set_response(200, [])
    with connection_to_server_with_users(herder, RestLimits(max_body_bytes=1000)) as connection:
        connection.sendall(POST + b"\r\n{")
        assert read_response(connection, b"resource.").startswith(b"HTTP/1.1 401 ")
        connection.sendall(b" " * 999_999)
        authorization = basic("alice:s3cret").encode()
        head = b"GET /connectors HTTP/1.1\r\nHost: x\r\nAuthorization: "
        connection.sendall(head + authorization + b"\r\n\r\n")
        assert read_response(connection, b"[]").startswith(b"HTTP/1.1 200 ")


def test_a_client_that_expects_100_continue_gets_401_and_no_other_request() -> None:
    with connection_to_server_with_users(ScriptedHerder(), RestLimits()) as connection:
        connection.sendall(POST + b"Expect: 100-continue\r\n\r\n")
        answer = b"".join(iter(partial(connection.recv, 1000), b""))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"\r\nConnection: close\r\n" in answer


def test_the_rest_of_a_refused_body_is_discarded_for_a_limited_time() -> None:
    limits = RestLimits(headers_timeout_s=0.3)
    with connection_to_server_with_users(ScriptedHerder(), limits) as connection:
        connection.sendall(POST + b"\r\n")
        assert read_response(connection, b"resource.").startswith(b"HTTP/1.1 401 ")
        sent = 0
        with suppress(ConnectionError):  # a byte that is sent after the close resets the connection
            while not select.select([connection], [], [], 0.05)[0] or connection.recv(1000):
                connection.sendall(b" ")
                sent += 1
                assert sent < 1000


@pytest.mark.parametrize(("method", "path"), [("POST", "tasks"), ("PUT", "fence")])
def test_internal_requests_need_a_signature_and_no_password(method: str, path: str) -> None:
    with running_rest_client(
        ScriptedHerder(), RestOptions(users=USERS, access_log=False)
    ) as client:
        answer = client.request(method, f"/connectors/x/{path}")
        assert (answer.status, answer.message) == (
            400,
            "Internal request missing required signature",
        )
        signed = {
            "X-Connect-Authorization": "BITrDPAvdOMx22LCcm3SRe927tekj1J0DFAjzCI4mNs=",
            "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
        }
        answer = client.request(method, f"/connectors/x/{path}", headers=signed)
        assert (answer.status, answer.message) == (
            403,
            "Internal request contained invalid signature.",
        )
        signed["X-Connect-Authorization"] = "%%%"
        assert client.request(method, f"/connectors/x/{path}", headers=signed).status == 400
