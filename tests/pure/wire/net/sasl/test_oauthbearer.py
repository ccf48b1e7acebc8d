"""OAUTHBEARER and SCRAM as bytes, and how a refusal ends."""

from __future__ import annotations

import pytest
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ClusterUnavailable, NotAuthorized
from sparkmirror.security.sasl_credentials import (
    BearerToken,
    PasswordLogin,
    SaslLogin,
    TokenLogin,
    TokenUnavailable,
)
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.endpoint_errors import Endpoint
from sparkmirror.wire.net.sasl.authenticator import SaslClientAuthenticator

ENDPOINT = Endpoint(cluster="west", address=Address("b1", 9092), security_protocol="SASL_SSL")


class GivenTokens:
    """Supplies one token, or fails."""

    def __init__(self, token: BearerToken | None) -> None:
        self._token = token

    def token(self, host: str) -> BearerToken:
        if self._token is None:
            raise TokenUnavailable("https://idp/t answered 503")
        return self._token


def started(login: SaslLogin) -> SaslClientAuthenticator:
    exchange = SaslClientAuthenticator(ENDPOINT, login)
    exchange.on_handshake_response(
        SaslHandshakeResponse(error_code=0, mechanisms=[login.mechanism])
    )
    return exchange


def answer(
    auth_bytes: bytes = b"", error_code: int = 0, message: str | None = None
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=error_code,
        error_message=message,
        auth_bytes=auth_bytes,
        session_lifetime_ms=5000,
    )


def bearer(extensions: dict[str, str] | None = None) -> TokenLogin:
    token = BearerToken(value=Password("s3cret.token"), extensions=extensions or {})
    return TokenLogin(tokens=GivenTokens(token))


@pytest.mark.parametrize(
    ("extensions", "message"),
    [
        ({}, b"n,,\x01auth=Bearer s3cret.token\x01\x01"),
        ({"a": "b", "c": "d"}, b"n,,\x01auth=Bearer s3cret.token\x01a=b\x01c=d\x01\x01"),
    ],
    ids=["plain", "extensions"],
)
def test_the_first_message_has_the_token_and_the_extensions(
    extensions: dict[str, str], message: bytes
) -> None:
    exchange = started(bearer(extensions))
    assert exchange.authenticate_request().auth_bytes == message
    assert not exchange.is_complete()
    exchange.on_authenticate_response(answer())
    assert exchange.is_complete()
    assert exchange.session_lifetime_s == 5.0


@pytest.mark.parametrize(
    "last", [answer(error_code=58, message="invalid credentials"), answer(), answer(b"more")],
    ids=["error", "empty", "bytes"],
)  # fmt: skip
def test_a_refusal_ends_with_the_text_of_the_broker(last: SaslAuthenticateResponse) -> None:
    exchange = started(bearer())
    exchange.authenticate_request()
    exchange.on_authenticate_response(answer(b'{"status":"invalid_token","scope":"kafka"}'))
    assert not exchange.is_complete()
    assert exchange.authenticate_request().auth_bytes == b"\x01"
    with pytest.raises(NotAuthorized) as caught:
        exchange.on_authenticate_response(last)
    assert "status invalid_token, scope kafka" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert not exchange.is_complete()


def test_a_refusal_that_is_no_json_is_shown_as_text() -> None:
    exchange = started(bearer())
    exchange.authenticate_request()
    exchange.on_authenticate_response(answer(b"\xffnot \x00json" + b"x" * 5000))
    with pytest.raises(NotAuthorized, match="not json") as caught:
        exchange.on_authenticate_response(answer())
    assert len(str(caught.value)) < 1000


def test_without_a_token_the_cluster_is_unavailable_and_the_reason_is_given() -> None:
    with pytest.raises(ClusterUnavailable, match="https://idp/t answered 503") as caught:
        started(TokenLogin(tokens=GivenTokens(None)))
    assert caught.value.retriable


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_delegation_token_says_so_in_the_first_message_of_scram(mechanism: str) -> None:
    login = PasswordLogin(
        mechanism=mechanism, username="id", password=Password("hmac"), is_delegation_token=True
    )
    first = started(login).authenticate_request().auth_bytes
    assert first.startswith(b"n,,n=id,r=")
    assert first.endswith(b",tokenauth=true")


def test_scram_escapes_a_user_name_with_commas_and_equals_signs() -> None:
    login = PasswordLogin(mechanism="SCRAM-SHA-256", username="a=b,c", password=Password("p"))
    assert started(login).authenticate_request().auth_bytes.startswith(b"n,,n=a=3Db=2Cc,r=")
