"""The bytes of a SASL login: one mechanism object per exchange.

PLAIN and SCRAM are kafka-python's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from kafka.net.sasl import SASL_MECHANISMS

from sparkmirror.security.logins import BearerToken, PasswordLogin, SaslLogin

# kafka-python's mechanisms log a warning per connection under SASL_PLAINTEXT. The operator chose
# that protocol, and errors of a login are raised with the cluster's name. A level set before stays.
_LIBRARY_LOG = logging.getLogger("kafka.net")
if _LIBRARY_LOG.level == logging.NOTSET:
    _LIBRARY_LOG.setLevel(logging.CRITICAL)


class SaslMechanism(Protocol):
    """One exchange: requests and responses in turn, until it is complete."""

    def auth_bytes(self) -> bytes:
        """Return the bytes of the next request."""

    def receive(self, auth_bytes: bytes) -> object:
        """Accept the bytes of a response. Raises an error if the broker refuses the login."""

    def is_done(self) -> bool:
        """Whether the authentication is complete."""


def new_mechanism(login: SaslLogin, security_protocol: str, host: str) -> SaslMechanism:
    """Return the mechanism for one exchange with the broker at this host.

    Raises TokenUnavailable.
    """
    if isinstance(login, PasswordLogin):
        mechanism: Callable[..., Any] = SASL_MECHANISMS[login.mechanism]
        made: SaslMechanism = mechanism(
            security_protocol=security_protocol,
            sasl_mechanism=login.mechanism,
            sasl_plain_username=login.username,
            sasl_plain_password=login.password.value,
            host=host,
        )
        return made
    return OAuthBearerMechanism(login.tokens.token(host))


class OAuthBearerMechanism:
    """OAUTHBEARER (RFC 7628): one request with the token; an error of the broker is JSON."""

    def __init__(self, token: BearerToken) -> None:
        self._token = token
        self._refusal = b""
        self._requests = 0
        self._done = False

    def auth_bytes(self) -> bytes:
        """Return the token, or after a refusal the byte that ends the exchange."""
        self._requests += 1
        if self._refusal:
            return b"\x01"
        extensions = "".join(f"\x01{k}={v}" for k, v in self._token.extensions.items())
        return f"n,,\x01auth=Bearer {self._token.value.value}{extensions}\x01\x01".encode()

    def receive(self, auth_bytes: bytes) -> None:
        """An empty response accepts the token; the broker explains a refusal in JSON."""
        if auth_bytes:
            self._refusal = auth_bytes
        else:
            self._done = True

    def is_done(self) -> bool:
        """Whether the broker has accepted the token."""
        return self._done
