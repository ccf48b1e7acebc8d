"""Requests to a token endpoint, over http and https, on real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.security.oauthbearer.token_endpoint import MAX_ANSWER_BYTES, TokenEndpoint
from sparkmirror.security.sasl_credentials import TokenUnavailable
from tests.support.reserved_port import reserved_port
from tests.support.security.token_server import (
    TokenServer,
    running_token_server,
    signed_token,
)

FORM = {"grant_type": "client_credentials"}


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with running_token_server() as made:
        yield made


def retrieve(url: str) -> str:
    endpoint = TokenEndpoint(url=url, connect_timeout_s=30, read_timeout_s=30)
    return endpoint.retrieve(FORM, {}, [Password("s3cret")]).value.value


def test_the_expiry_is_that_of_the_token_or_of_the_answer(server: TokenServer) -> None:
    endpoint = TokenEndpoint(url=server.url)
    server.answer_json(200, access_token=signed_token(exp=5000.0), expires_in=1)
    assert endpoint.retrieve(FORM, {}, [], now_s=4000.0).expires_at_s == 5000.0
    server.answer_json(200, access_token="opaque", expires_in="60")
    assert endpoint.retrieve(FORM, {}, [], now_s=4000.0).expires_at_s == 4060.0
    server.answer_json(200, id_token="opaque")
    assert endpoint.retrieve(FORM, {}, [], now_s=4000.0).expires_at_s == 4300.0


def test_a_token_that_has_expired_names_the_clock(server: TokenServer) -> None:
    server.answer_json(200, access_token=signed_token(lifetime_s=-100))
    with pytest.raises(TokenUnavailable, match="expired 1.. seconds ago by this host's clock"):
        retrieve(server.url)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, b'{"error":"invalid_client","error_description":"s3cret is wrong"}',
         r"answered 401 invalid_client: \[hidden\] is wrong; check the client id"),
        (503, b"<html>down</html>", "answered 503; check whether the server is well"),
        (302, b"", "answered 302; redirects are not followed"),
        (404, b"", "answered 404; check sasl.oauthbearer.token.endpoint.url"),
        (200, b"{}", "answered without access_token"),
        (200, b"[1]", "answered without access_token"),
        (200, b'{"access_token":"two words"}', "is not a token"),
        (200, b'{"access_token":5}', "answered without access_token"),
        (200, b"x" * (MAX_ANSWER_BYTES + 1), "answered more than 1000000 bytes"),
    ],
    ids=["refused", "down", "redirect", "path", "empty", "list", "blank", "number", "large"],
)  # fmt: skip
def test_a_failure_says_what_the_server_said_without_secrets(
    server: TokenServer, status: int, body: bytes, message: str
) -> None:
    server.status, server.body = status, body
    server.headers = {"Location": "http://127.0.0.1:1/"}
    with pytest.raises(TokenUnavailable, match=message) as caught:
        retrieve(server.url)
    assert "s3cret" not in str(caught.value)
    assert len(server.requests) == 1


def test_a_server_that_does_not_answer_is_given_up(server: TokenServer) -> None:
    server.may_answer.clear()
    endpoint = TokenEndpoint(url=server.url, read_timeout_s=0.2)
    with pytest.raises(TokenUnavailable, match=r"within 0\.2 seconds .*read\.timeout\.ms"):
        endpoint.retrieve(FORM, {}, [])


def test_a_port_without_a_server_is_named() -> None:
    with reserved_port() as port:
        url = f"http://127.0.0.1:{port}/t"
        with pytest.raises(TokenUnavailable, match=f"{url}: connection refused"):
            retrieve(url)


def test_a_server_that_speaks_no_http_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"\x15\x03\x01garbage\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(TokenUnavailable, match="the connection failed"):
            retrieve(f"http://127.0.0.1:{listener.getsockname()[1]}/t")
        thread.join()


def test_https_trusts_the_authority_of_its_own_settings_only(tmp_path: Path) -> None:
    authority = CertificateAuthority.create(tmp_path / "tls")
    with running_token_server(authority.issue("idp")) as server:
        trusted = TokenEndpoint(
            url=server.url,
            ssl_settings=frozenset({("ssl.truststore.location", str(authority.ca_certificate))}),
        )
        trusted.check("k")
        assert trusted.retrieve(FORM, {}, []).value.value
        with pytest.raises(TokenUnavailable, match=r"certificate is not accepted.*truststore"):
            retrieve(server.url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://a/t", "is not an http, https or file URL"),
        ("https:///t", "is not an http, https or file URL"),
        ("https://user:pw@a/t", "may not hold a user name"),
        ("https://a:port/t", "invalid port"),
    ],
)
def test_a_url_that_cannot_be_used_is_named_by_its_key(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        TokenEndpoint(url=url).check("sasl.oauthbearer.token.endpoint.url")
    assert "pw" not in str(caught.value)
