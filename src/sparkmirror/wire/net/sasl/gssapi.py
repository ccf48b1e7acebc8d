"""GSSAPI (RFC 4752), without a security layer: TLS protects the connection, or nothing does.

client                              broker
first token of Kerberos      ──▶
                             ◀──    its token, until both have proven who they are
nothing                      ──▶
                             ◀──    the security layers it offers, signed
no security layer, signed    ──▶
                             ◀──    nothing: the login is accepted
"""

from __future__ import annotations

from sparkmirror.security.sasl_credentials import LoginRefused, SecurityContext

NO_SECURITY_LAYER = 1
_OFFER_BYTES = 4


class GssapiMechanism:
    """One exchange."""

    def __init__(self, context: SecurityContext) -> None:
        self._context = context
        self._next = context.step(None)
        self._has_answered_offer = False
        self._is_done = False

    def auth_bytes(self) -> bytes:
        """Return the next message."""
        return self._next

    def receive(self, auth_bytes: bytes) -> None:
        """Accept a message of the broker. Raises LoginRefused."""
        if self._has_answered_offer:
            self._is_done = True
        elif not self._context.is_complete:
            self._next = self._context.step(auth_bytes)
        else:
            self._next = self._answer_offer(auth_bytes)

    def is_done(self) -> bool:
        """Whether the broker has accepted the login."""
        return self._is_done

    def _answer_offer(self, message: bytes) -> bytes:
        offer = self._context.unwrap(message)
        if len(offer) != _OFFER_BYTES or not offer[0] & NO_SECURITY_LAYER:
            raise LoginRefused("the broker demands a security layer, which Kafka's clients lack")
        self._has_answered_offer = True
        # No size, because no layer follows; no other identity than that of the ticket.
        return self._context.wrap(bytes([NO_SECURITY_LAYER, 0, 0, 0]))
