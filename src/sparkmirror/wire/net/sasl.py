"""One SASL authentication, step by step, at the start and again before a session ends (KIP-368).

Returns the next request and takes its response. It has no socket, so it serves connections that
block and connections that do not. The mechanisms are kafka-python's, with its keyword names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from kafka.net.sasl import SASL_MECHANISMS

from sparkmirror.wire.net.endpoint_errors import Endpoint
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

T = TypeVar("T")

# kafka-python's mechanisms log a warning per connection under SASL_PLAINTEXT. The operator chose
# that protocol, and errors of a login are raised here with the cluster's name. A level set before
# stays.
_LIBRARY_LOG = logging.getLogger("kafka.net")
if _LIBRARY_LOG.level == logging.NOTSET:
    _LIBRARY_LOG.setLevel(logging.CRITICAL)

CHECK_CREDENTIALS = "check the user name, the password or the token, and that the broker knows them"
CHECK_MECHANISM = "set sasl.mechanism to one that the broker offers"


class SaslMechanism(Protocol):
    """A mechanism of kafka-python, as far as it is used here."""

    def auth_bytes(self) -> bytes:
        """Return the bytes of the next request."""

    def receive(self, auth_bytes: bytes) -> object:
        """Accept the bytes of a response."""

    def is_done(self) -> bool:
        """Whether the authentication is complete."""


class SaslClientAuthenticator:
    """A handshake about the mechanism, then as many requests as the mechanism needs."""

    def __init__(self, endpoint: Endpoint, security: Mapping[str, Any]) -> None:
        self._endpoint = endpoint
        self._security = security
        self._mechanism_name: str = security.get("sasl_mechanism") or ""
        self._mechanism: SaslMechanism | None = None
        self.session_lifetime_s = 0.0
        """The lifetime that the broker gives the session; 0 for no limit."""

    def handshake_request(self) -> SaslHandshakeRequest:
        """Return the first request: it names the mechanism."""
        return SaslHandshakeRequest(mechanism=self._mechanism_name)

    def on_handshake_response(self, answer: SaslHandshakeResponse) -> None:
        """Accept the response to the handshake. Raises NotAuthorized."""
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            what = f"it does not accept {self._mechanism_name}, it offers {offered}"
            raise self._endpoint.not_authorized(what, CHECK_MECHANISM)
        if code is not ErrorCode.NONE:
            raise self._endpoint.not_authorized(
                f"the SASL handshake failed: {code}", CHECK_MECHANISM
            )
        if self._mechanism_name not in SASL_MECHANISMS:
            raise self._endpoint.not_authorized(
                f"{self._mechanism_name} is not supported here", CHECK_MECHANISM
            )
        mechanism: Callable[..., SaslMechanism] = SASL_MECHANISMS[self._mechanism_name]
        keywords = dict(self._security) | {"host": self._endpoint.address.host}
        self._mechanism = self._run_mechanism(lambda: mechanism(**keywords))

    def is_complete(self) -> bool:
        """Whether the broker has accepted the login."""
        return self._mechanism is not None and self._mechanism.is_done()

    def authenticate_request(self) -> SaslAuthenticateRequest:
        """Return the next request of the mechanism. Raises NotAuthorized."""
        return SaslAuthenticateRequest(
            auth_bytes=self._run_mechanism(self._require_mechanism().auth_bytes)
        )

    def on_authenticate_response(self, answer: SaslAuthenticateResponse) -> None:
        """Accept the response to a request of the mechanism. Raises NotAuthorized."""
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE:
            reason = answer.error_message or str(code)
            raise self._endpoint.not_authorized(
                f"{self._mechanism_name} login failed: {reason}", CHECK_CREDENTIALS
            )
        received = bytes(answer.auth_bytes or b"")
        self._run_mechanism(lambda: self._require_mechanism().receive(received))
        self.session_lifetime_s = (answer.session_lifetime_ms or 0) / 1000

    def _require_mechanism(self) -> SaslMechanism:
        if self._mechanism is None:
            raise RuntimeError("authenticate_request before on_handshake_response")
        return self._mechanism

    def _run_mechanism(self, step: Callable[[], T]) -> T:
        """Run a step of the mechanism or its token provider. Raises NotAuthorized."""
        try:
            return step()
        except Exception as error:
            what = f"{self._mechanism_name} login failed here: {type(error).__name__}: {error}"
            raise self._endpoint.not_authorized(what, CHECK_CREDENTIALS) from error
