"""What the REST server shows to clients without credentials, and who may reach it."""

from __future__ import annotations

import importlib.metadata
import logging
import platform
import re
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import sparkmirror
from sparkmirror.config.secrets.password import Password
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.rest.authentication.basic_auth import BasicAuthUsers
from sparkmirror.rest.authentication.bearer_tokens import BearerTokens
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.security.tls.ssl_context import server_context
from tests.support.rest.rest_client import RestClient, request_once, running_rest_server
from tests.support.rest.scripted_herder import ScriptedHerder

USERS = BasicAuthUsers({"alice": Password("s3cret")})

TELLTALES = re.compile(
    "|".join(
        [
            *("Traceback", r"File \"", "Exception", r"\.py", "at org\\.", "/src/"),
            *("uvicorn", "h11", "python", "sparkmirror", "kafka", "connect/", "jetty", "spark"),
            re.escape(platform.python_version()),
            re.escape(importlib.metadata.version("uvicorn")),
            re.escape(importlib.metadata.version("h11")),
        ]
    ),
    re.IGNORECASE,
)
"""Products, versions, and the marks of stack traces."""


def exchange(address: str, request: bytes) -> str:
    """Send bytes and return all that the server sends until it closes the connection."""
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=50) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode("latin-1")


CLOSE = b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
"""The end of a request line, and headers that make the server close the connection."""


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /" + CLOSE + b"\r\n", 401),
        (b"GET /health" + CLOSE + b"\r\n", 401),
        (b"GET /openapi.json" + CLOSE + b"\r\n", 401),
        (b"GET /nope" + CLOSE + b"\r\n", 401),
        (b"OPTIONS /" + CLOSE + b"\r\n", 401),
        (b"DELETE /connectors/a" + CLOSE + b"Authorization: Basic eDp5\r\n\r\n", 401),
        (b"POST /connectors" + CLOSE + b"Content-Length: 1\r\n\r\n{", 401),
        (b"PUT /connectors/a/fence" + CLOSE + b"\r\n", 400),
        (b"GET /a//b" + CLOSE + b"\r\n", 400),
        (b"GET /%ff" + CLOSE + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /" + CLOSE.replace(b"1.1", b"9.9") + b"\r\n", 401),
        (b"\x00\x00\x00\x1a\x00\x12\x00\x03\r\n\r\n", 400),
        (b"GET /" + CLOSE + b"Content-Length: x\r\n\r\n", 400),
        (b"GET /" + CLOSE + b"X: " + b"a" * 100_000, 400),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else str(value),
)
def test_a_client_without_credentials_learns_no_product_version_or_stack_trace(
    request_bytes: bytes, status: int
) -> None:
    options = RestOptions(users=USERS, access_log=False)
    with running_rest_server(ScriptedHerder(), options) as server:
        answer = exchange(server.address, request_bytes)
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert "\nserver:" not in answer.lower()
    assert not TELLTALES.search(answer), answer
    assert sparkmirror.__name__ not in answer
    if status == 401:
        head, _, body = answer.partition("\r\n\r\n")
        names = {line.partition(":")[0].lower() for line in head.splitlines()[1:]}
        assert names <= {"date", "content-type", "content-length", "connection"}
        assert body == "User cannot access the resource."


def test_no_answer_names_the_server() -> None:
    herder = ScriptedHerder()
    herder.set_response(200, [])
    with running_rest_server(herder) as server:
        for path in ("/connectors", "/nope", "/a//b"):
            assert "server" not in request_once(server.address, "GET", path).headers


# -- open listeners ------------------------------------------------------------------------------


def open_warnings(
    options: RestOptions, caplog: pytest.LogCaptureFixture, listener: str = "http://:0"
) -> list[str]:
    """Start and stop a server and return its warnings."""
    caplog.clear()
    with running_rest_server(ScriptedHerder(), options, listener):
        pass
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("listener", ["http://:0", "http://0.0.0.0:0", "HTTP://:0"])
def test_a_server_on_all_interfaces_without_authentication_warns_once(
    listener: str, caplog: pytest.LogCaptureFixture
) -> None:
    warnings = open_warnings(RestOptions(), caplog, listener)
    assert len(warnings) == 1
    assert "is open" in warnings[0]
    assert "sparkmirror.rest.bearer.tokens.file" in warnings[0]


def test_a_server_on_one_address_or_with_authentication_does_not_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ci: a-token-of-the-ci-system\n")
    tokens.chmod(0o600)
    assert open_warnings(RestOptions(), caplog, "http://127.0.0.1:0") == []
    assert open_warnings(RestOptions(users=USERS), caplog) == []
    assert open_warnings(RestOptions(tokens=BearerTokens(tokens)), caplog) == []


def test_open_admin_listeners_are_named_too(caplog: pytest.LogCaptureFixture) -> None:
    admin = RestListener.parse("http://:0")
    warnings = open_warnings(RestOptions(admin_listeners=(admin,)), caplog, "http://127.0.0.1:0")
    assert len(warnings) == 1


# -- client certificates -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    authority = CertificateAuthority.create(tmp_path_factory.mktemp("exposure") / "tls")
    authority.issue("server")
    authority.issue("alice")
    return authority


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key with a certificate of another authority."""
    authority = CertificateAuthority.create(tmp_path_factory.mktemp("stranger") / "tls")
    authority.issue("stranger")
    return authority.key_store("stranger")


def server_tls(authority: CertificateAuthority, client_auth: str) -> ssl.SSLContext:
    return server_context(
        {
            "ssl.keystore.location": str(authority.key_store("server")),
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.client.auth": client_auth,
        }
    )


def client_tls(authority: CertificateAuthority, key: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.ca_certificate)
    if key is not None:
        context.load_cert_chain(key)
    return context


@pytest.mark.parametrize(
    ("client_auth", "certificate", "is_accepted"),
    [
        ("none", None, True),
        ("none", "stranger", True),
        ("requested", None, True),
        ("requested", "alice", True),
        ("requested", "stranger", False),
        ("required", None, False),
        ("required", "alice", True),
        ("required", "stranger", False),
    ],
)
def test_client_certificates_are_checked_as_configured(
    client_auth: str,
    certificate: str | None,
    is_accepted: bool,
    authority: CertificateAuthority,
    stranger: Path,
) -> None:
    herder = ScriptedHerder()
    herder.set_response(200, [])
    keys = {"alice": authority.key_store("alice"), "stranger": stranger}
    context = client_tls(authority, keys[certificate] if certificate else None)
    options = RestOptions(tls=server_tls(authority, client_auth), access_log=False)
    with running_rest_server(herder, options, "https://127.0.0.1:0") as server:
        try:
            status = request_once(server.address, "GET", "/connectors", context).status
        except (ssl.SSLError, ConnectionError):
            status = None
    assert status == (200 if is_accepted else None)


def test_a_required_certificate_is_authentication_enough_for_all_interfaces(
    authority: CertificateAuthority, caplog: pytest.LogCaptureFixture
) -> None:
    for client_auth, expected in (("requested", 1), ("required", 0)):
        options = RestOptions(tls=server_tls(authority, client_auth))
        assert len(open_warnings(options, caplog, "https://:0")) == expected


def test_admin_listeners_have_their_own_certificate_rules(authority: CertificateAuthority) -> None:
    herder = ScriptedHerder()
    options = RestOptions(
        admin_listeners=(RestListener.parse("https://127.0.0.1:0"),),
        admin_tls=server_tls(authority, "required"),
        access_log=False,
    )
    server = RestServer(herder, [RestListener.parse("http://127.0.0.1:0")], options)
    server.start()
    try:
        public, admin = server.addresses
        assert request_once(public, "GET", "/admin/loggers").status == 404
        with pytest.raises((ssl.SSLError, ConnectionError)):
            request_once(admin, "GET", "/admin/loggers", client_tls(authority, None))
        client = RestClient(admin, client_tls(authority, authority.key_store("alice")))
        herder.set_response(200, {})
        assert client.request("GET", "/admin/loggers").json == {}
        client.close()
    finally:
        server.stop(1.0)
