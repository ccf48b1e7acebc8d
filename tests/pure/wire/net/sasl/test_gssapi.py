"""The exchange of GSSAPI (RFC 4752), with a scripted security context."""

from __future__ import annotations

import pytest
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from sparkmirror.errors import ClusterUnavailable, NotAuthorized
from sparkmirror.security.sasl_credentials import (
    KerberosLogin,
    LoginRefused,
    SecurityContext,
    TokenUnavailable,
)
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.endpoint_errors import Endpoint
from sparkmirror.wire.net.sasl.authenticator import SaslClientAuthenticator
from sparkmirror.wire.net.sasl.gssapi import GssapiMechanism

ENDPOINT = Endpoint(cluster="west", address=Address("b1", 9092), security_protocol="SASL_SSL")


class ScriptedContext:
    """Answers one token of the broker; signed messages have a prefix."""

    def __init__(self) -> None:
        self.is_complete = False
        self.received: list[bytes | None] = []

    def step(self, received: bytes | None) -> bytes:
        self.received.append(received)
        self.is_complete = received is not None
        return b"" if self.is_complete else b"first"

    def unwrap(self, message: bytes) -> bytes:
        assert message.startswith(b"signed:")
        return message.removeprefix(b"signed:")

    def wrap(self, content: bytes) -> bytes:
        return b"signed:" + content


def test_the_exchange_ends_without_a_security_layer() -> None:
    context = ScriptedContext()
    mechanism = GssapiMechanism(context)
    assert mechanism.auth_bytes() == b"first"
    mechanism.receive(b"token")
    assert context.received == [None, b"token"]
    assert mechanism.auth_bytes() == b""
    mechanism.receive(b"signed:\x07\x00\x10\x00")
    assert mechanism.auth_bytes() == b"signed:\x01\x00\x00\x00"
    assert not mechanism.is_done()
    mechanism.receive(b"")
    assert mechanism.is_done()


@pytest.mark.parametrize("offer", [b"\x06\x00\x10\x00", b"\x01", b""])
def test_a_broker_that_demands_a_security_layer_is_refused(offer: bytes) -> None:
    mechanism = GssapiMechanism(ScriptedContext())
    mechanism.receive(b"token")
    with pytest.raises(LoginRefused, match="demands a security layer"):
        mechanism.receive(b"signed:" + offer)


class FailingTickets:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def new_context(self, host: str) -> SecurityContext:
        raise self._error


def handshake(error: Exception) -> None:
    exchange = SaslClientAuthenticator(ENDPOINT, KerberosLogin(tickets=FailingTickets(error)))
    exchange.on_handshake_response(SaslHandshakeResponse(error_code=0, mechanisms=["GSSAPI"]))


def test_without_a_kdc_the_cluster_is_unavailable_and_a_refusal_is_not_retried() -> None:
    with pytest.raises(ClusterUnavailable, match=r"needs a ticket; .*no KDC"):
        handshake(TokenUnavailable("no KDC"))
    with pytest.raises(NotAuthorized, match="GSSAPI login failed: no such principal"):
        handshake(LoginRefused("no such principal"))


def test_a_refusal_of_the_broker_ends_the_login() -> None:
    class Tickets:
        def new_context(self, host: str) -> SecurityContext:
            assert host == "b1"
            return ScriptedContext()

    exchange = SaslClientAuthenticator(ENDPOINT, KerberosLogin(tickets=Tickets()))
    exchange.on_handshake_response(SaslHandshakeResponse(error_code=0, mechanisms=["GSSAPI"]))
    assert exchange.authenticate_request().auth_bytes == b"first"
    refusal = SaslAuthenticateResponse(error_code=58, error_message="unknown", auth_bytes=b"")
    with pytest.raises(NotAuthorized, match="unknown"):
        exchange.on_authenticate_response(refusal)
