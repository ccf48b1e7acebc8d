"""One SASL conversation, step by step, at start-up and again before a session ends (KIP-368).

Says what to ask next and takes the answer; knows no socket, so it serves a connection that blocks
and one that does not. The mechanisms are kafka-python's, taken by its own keyword names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from kafka.net.sasl import SASL_MECHANISMS

from sparkmirror.wire.net.endpoint import Endpoint
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

T = TypeVar("T")

CHECK_CREDENTIALS = "check the user name, the password or the token, and that the broker knows them"
CHECK_MECHANISM = "set sasl.mechanism to one that the broker offers"


class SaslMechanism(Protocol):
    """What we use of a mechanism of the library."""

    def auth_bytes(self) -> bytes:
        """Write the next thing to say."""

    def receive(self, auth_bytes: bytes) -> object:
        """Take what the broker said."""

    def is_done(self) -> bool:
        """Tell whether the conversation is over."""


class SaslClientAuthenticator:
    """The conversation: a handshake about the mechanism, then as many turns as that needs."""

    def __init__(self, place: Endpoint, security: Mapping[str, Any]) -> None:
        self._endpoint = place
        self._security = security
        self._mechanism_name: str = security.get("sasl_mechanism") or ""
        self._mechanism: SaslMechanism | None = None
        self.session_lifetime_s = 0.0
        """How long the broker lets the session last; 0 if for ever."""

    def handshake_request(self) -> SaslHandshakeRequest:
        """Ask first: for the mechanism."""
        return SaslHandshakeRequest(mechanism=self._mechanism_name)

    def on_handshake_response(self, answer: SaslHandshakeResponse) -> None:
        """Take the answer to the handshake."""
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            said = f"it does not take {self._mechanism_name}, it offers {offered}"
            raise self._endpoint.not_authorized(said, CHECK_MECHANISM)
        if code is not ErrorCode.NONE:
            raise self._endpoint.not_authorized(
                f"the SASL handshake failed: {code}", CHECK_MECHANISM
            )
        if self._mechanism_name not in SASL_MECHANISMS:
            raise self._endpoint.not_authorized(
                f"{self._mechanism_name} is not known here", CHECK_MECHANISM
            )
        make: Callable[..., SaslMechanism] = SASL_MECHANISMS[self._mechanism_name]
        words = dict(self._security) | {"host": self._endpoint.address.host}
        self._mechanism = self._run_mechanism(lambda: make(**words))

    def is_complete(self) -> bool:
        """Tell whether the broker has let us in."""
        return self._mechanism is not None and self._mechanism.is_done()

    def authenticate_request(self) -> SaslAuthenticateRequest:
        """Ask next: what the mechanism has to say."""
        return SaslAuthenticateRequest(
            auth_bytes=self._run_mechanism(self._require_mechanism().auth_bytes)
        )

    def on_authenticate_response(self, answer: SaslAuthenticateResponse) -> None:
        """Take the answer to what the mechanism said."""
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE:
            said = answer.error_message or str(code)
            raise self._endpoint.not_authorized(
                f"{self._mechanism_name} login failed: {said}", CHECK_CREDENTIALS
            )
        heard = bytes(answer.auth_bytes or b"")
        self._run_mechanism(lambda: self._require_mechanism().receive(heard))
        self.session_lifetime_s = (answer.session_lifetime_ms or 0) / 1000

    def _require_mechanism(self) -> SaslMechanism:
        if self._mechanism is None:
            raise RuntimeError("the handshake comes first")
        return self._mechanism

    def _run_mechanism(self, step: Callable[[], T]) -> T:
        """Run a step of the mechanism: whatever it raises, a token provider too, means no entry."""
        try:
            return step()
        except Exception as error:
            said = f"{self._mechanism_name} login failed here: {type(error).__name__}: {error}"
            raise self._endpoint.not_authorized(said, CHECK_CREDENTIALS) from error
