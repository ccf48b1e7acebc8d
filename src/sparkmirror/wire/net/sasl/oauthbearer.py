"""OAUTHBEARER (RFC 7628): one request with the token. A broker explains a refusal in JSON."""

from __future__ import annotations

import json

from sparkmirror.security.sasl_credentials import BearerToken, LoginRefused

_MAX_REFUSAL_CHARS = 500


class OAuthBearerMechanism:
    """One exchange with one token."""

    def __init__(self, token: BearerToken) -> None:
        self._token = token
        self._refusal = b""
        self._is_done = False

    def auth_bytes(self) -> bytes:
        """Return the token, or after a refusal the byte that ends the exchange."""
        if self._refusal:
            return b"\x01"
        extensions = "".join(f"\x01{k}={v}" for k, v in self._token.extensions.items())
        return f"n,,\x01auth=Bearer {self._token.value.value}{extensions}\x01\x01".encode()

    def receive(self, auth_bytes: bytes) -> None:
        """Accept a response: an empty one accepts the token, JSON refuses it.

        The broker answers the last byte of a refused exchange with an error, which usually repeats
        the refusal. If it does not, this raises LoginRefused.
        """
        if self._refusal:
            raise LoginRefused(_refusal_text(self._refusal))
        if auth_bytes:
            self._refusal = auth_bytes
        else:
            self._is_done = True

    def refusal(self) -> str:
        """Return why the broker refuses the token; empty if it has not."""
        return _refusal_text(self._refusal) if self._refusal else ""

    def is_done(self) -> bool:
        """Whether the broker has accepted the token."""
        return self._is_done


def _refusal_text(refusal: bytes) -> str:
    text = refusal.decode("utf-8", errors="replace")
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict):
        text = ", ".join(f"{key} {value}" for key, value in answer.items() if value)
    shown = "".join(char for char in text if char.isprintable())
    return shown[:_MAX_REFUSAL_CHARS] or "it gives no reason"
