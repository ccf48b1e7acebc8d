"""The mechanism object of one SASL exchange, for each kind of login.

PLAIN and SCRAM are kafka-python's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import sparkmirror.wire.kafka_python_packages  # noqa: F401  before kafka-python

# isort: split
from kafka.net.sasl import SASL_MECHANISMS

from sparkmirror.security.sasl_credentials import KerberosLogin, PasswordLogin, SaslLogin
from sparkmirror.wire.net.sasl.gssapi import GssapiMechanism
from sparkmirror.wire.net.sasl.oauthbearer import OAuthBearerMechanism

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

    Raises TokenUnavailable, LoginRefused.
    """
    if isinstance(login, PasswordLogin):
        return _password_mechanism(login, security_protocol, host)
    if isinstance(login, KerberosLogin):
        return GssapiMechanism(login.tickets.new_context(host))
    return OAuthBearerMechanism(login.tokens.token(host))


def _password_mechanism(login: PasswordLogin, security_protocol: str, host: str) -> SaslMechanism:
    mechanism: Callable[..., Any] = SASL_MECHANISMS[login.mechanism]
    is_scram = login.mechanism.startswith("SCRAM-")
    username = _scram_name(login.username) if is_scram else login.username
    made: SaslMechanism = mechanism(
        security_protocol=security_protocol,
        sasl_mechanism=login.mechanism,
        sasl_plain_username=username,
        sasl_plain_password=login.password.value,
        host=host,
    )
    return DelegationTokenScram(made) if login.is_delegation_token else made


def _scram_name(username: str) -> str:
    """Return the name as SCRAM sends it (RFC 5802): the library sends it unchanged."""
    return username.replace("=", "=3D").replace(",", "=2C")


class DelegationTokenScram:
    """SCRAM with a delegation token (KIP-48): the first message says `tokenauth=true`.

    The extension is a part of the text that both sides sign, so it is added to that text too.
    """

    def __init__(self, scram: Any) -> None:
        self._scram = scram
        self._is_first = True

    def auth_bytes(self) -> bytes:
        """Return the message of SCRAM, the first one with the extension."""
        message: bytes = self._scram.auth_bytes()
        if not self._is_first:
            return message
        self._is_first = False
        self._scram._scram_client.auth_message += b",tokenauth=true"
        return message + b",tokenauth=true"

    def receive(self, auth_bytes: bytes) -> object:
        """Accept the response, as SCRAM does."""
        return self._scram.receive(auth_bytes)

    def is_done(self) -> bool:
        """Whether SCRAM is complete."""
        return bool(self._scram.is_done())
