"""One SASL conversation, step by step, at start-up and again before a session ends (KIP-368).

Says what to ask next and takes the answer; knows no socket, so it serves a connection that blocks
and one that does not. The mechanisms are kafka-python's, taken by its own keyword names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from kafka.net.sasl import SASL_MECHANISMS
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from sparkmirror.wire.codes import Code
from sparkmirror.wire.place import Place

T = TypeVar("T")

CREDENTIALS = "check the user name, the password or the token, and that the broker knows them"
MECHANISM = "set sasl.mechanism to one that the broker offers"


class Mechanism(Protocol):
    """What we use of a mechanism of the library."""

    def auth_bytes(self) -> bytes:
        """Write the next thing to say."""

    def receive(self, auth_bytes: bytes) -> object:
        """Take what the broker said."""

    def is_done(self) -> bool:
        """Tell whether the conversation is over."""


class Exchange:
    """The conversation: a handshake about the mechanism, then as many turns as that needs."""

    def __init__(self, place: Place, security: Mapping[str, Any]) -> None:
        self._place = place
        self._security = security
        self._name: str = security.get("sasl_mechanism") or ""
        self._mechanism: Mechanism | None = None
        self.session_s = 0.0
        """How long the broker lets the session last; 0 if for ever."""

    def handshake(self) -> SaslHandshakeRequest:
        """Ask first: for the mechanism."""
        return SaslHandshakeRequest(mechanism=self._name)

    def shake(self, answer: SaslHandshakeResponse) -> None:
        """Take the answer to the handshake."""
        code = Code(answer.error_code)
        if code is Code.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            said = f"it does not take {self._name}, it offers {offered}"
            raise self._place.refused(said, MECHANISM)
        if code is not Code.NONE:
            raise self._place.refused(f"the SASL handshake failed: {code}", MECHANISM)
        if self._name not in SASL_MECHANISMS:
            raise self._place.refused(f"{self._name} is not known here", MECHANISM)
        make: Callable[..., Mechanism] = SASL_MECHANISMS[self._name]
        words = dict(self._security) | {"host": self._place.address.host}
        self._mechanism = self._guarded(lambda: make(**words))

    def is_done(self) -> bool:
        """Tell whether the broker has let us in."""
        return self._mechanism is not None and self._mechanism.is_done()

    def authenticate(self) -> SaslAuthenticateRequest:
        """Ask next: what the mechanism has to say."""
        return SaslAuthenticateRequest(auth_bytes=self._guarded(self._current().auth_bytes))

    def receive(self, answer: SaslAuthenticateResponse) -> None:
        """Take the answer to what the mechanism said."""
        code = Code(answer.error_code)
        if code is not Code.NONE:
            said = answer.error_message or str(code)
            raise self._place.refused(f"{self._name} login failed: {said}", CREDENTIALS)
        heard = bytes(answer.auth_bytes or b"")
        self._guarded(lambda: self._current().receive(heard))
        self.session_s = (answer.session_lifetime_ms or 0) / 1000

    def _current(self) -> Mechanism:
        if self._mechanism is None:
            raise RuntimeError("the handshake comes first")
        return self._mechanism

    def _guarded(self, step: Callable[[], T]) -> T:
        """Run a step of the mechanism: whatever it raises, a token provider too, means no entry."""
        try:
            return step()
        except Exception as error:
            said = f"{self._name} login failed here: {type(error).__name__}: {error}"
            raise self._place.refused(said, CREDENTIALS) from error
