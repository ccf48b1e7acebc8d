"""One SASL authentication, step by step, at the start and again before a session ends (KIP-368).

Returns the next request and takes its response. It has no socket, so it serves connections that
block and connections that do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sparkmirror.security.sasl_credentials import (
    KerberosLogin,
    LoginRefused,
    SaslLogin,
    TokenUnavailable,
)
from sparkmirror.wire.net.endpoint_errors import Endpoint
from sparkmirror.wire.net.sasl.mechanisms import SaslMechanism, new_mechanism
from sparkmirror.wire.net.sasl.oauthbearer import OAuthBearerMechanism
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

T = TypeVar("T")

CHECK_CREDENTIALS = (
    "check the user name, the password or the token (sasl.jaas.config), and that the broker knows"
    " them"
)
CHECK_MECHANISM = "set sasl.mechanism to one that the broker offers"


class SaslClientAuthenticator:
    """A handshake about the mechanism, then as many requests as the mechanism needs."""

    def __init__(self, endpoint: Endpoint, login: SaslLogin) -> None:
        self._endpoint = endpoint
        self._login = login
        self._mechanism_name = login.mechanism
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
        self._mechanism = self._run_mechanism(
            lambda: new_mechanism(
                self._login, self._endpoint.security_protocol, self._endpoint.address.host
            )
        )

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
            raise self._endpoint.not_authorized(
                f"{self._mechanism_name} login failed: {self._refusal(answer, code)}",
                CHECK_CREDENTIALS,
            )
        received = bytes(answer.auth_bytes or b"")
        self._run_mechanism(lambda: self._require_mechanism().receive(received))
        self.session_lifetime_s = (answer.session_lifetime_ms or 0) / 1000

    def _refusal(self, answer: SaslAuthenticateResponse, code: ErrorCode) -> str:
        """Return the broker's reasons: the text of its error, and what the mechanism received."""
        reason = answer.error_message or str(code)
        if isinstance(self._mechanism, OAuthBearerMechanism) and self._mechanism.refusal():
            return f"{reason} ({self._mechanism.refusal()})"
        return reason

    def _require_mechanism(self) -> SaslMechanism:
        if self._mechanism is None:
            raise RuntimeError("authenticate_request before on_handshake_response")
        return self._mechanism

    def _run_mechanism(self, step: Callable[[], T]) -> T:
        """Run a step of the mechanism. Raises ClusterUnavailable without a token, NotAuthorized."""
        try:
            return step()
        except TokenUnavailable as error:
            proof = "ticket" if isinstance(self._login, KerberosLogin) else "token"
            raise self._endpoint.unavailable(f"it needs a {proof}", str(error)) from error
        except LoginRefused as error:
            what = f"{self._mechanism_name} login failed: {error}"
            raise self._endpoint.not_authorized(what, CHECK_CREDENTIALS) from error
        except Exception as error:
            what = f"{self._mechanism_name} login failed here: {type(error).__name__}: {error}"
            raise self._endpoint.not_authorized(what, CHECK_CREDENTIALS) from error
