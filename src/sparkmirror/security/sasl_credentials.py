"""Logins of SASL: what a client shows a broker. Values, and the interface of token sources.

A login says nothing about bytes: `wire.net.sasl` has the mechanisms. Secrets are `Password`s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import MirrorError


class TokenUnavailable(MirrorError):
    """A token cannot be had now. Its text names the reason and what to check, never a secret."""

    retriable = True


class LoginRefused(MirrorError):
    """The broker or the KDC refuses the login. The text is theirs, without a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """A token of OAUTHBEARER and the SASL extensions that go with it."""

    value: Password
    extensions: Mapping[str, str] = field(default_factory=dict)


class TokenSource(Protocol):
    """Supplies tokens. Used by several threads."""

    def token(self, host: str) -> BearerToken:
        """Return a token that is valid now for a broker of this host name.

        Blocks only if there is no valid token yet. Raises TokenUnavailable.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordLogin:
    """A user name and a password, for PLAIN and SCRAM."""

    mechanism: str
    username: str
    password: Password
    is_delegation_token: bool = False
    """Whether they are the id and the HMAC of a delegation token, for SCRAM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogin:
    """A token, for OAUTHBEARER."""

    tokens: TokenSource = field(repr=False)
    mechanism: str = "OAUTHBEARER"


class SecurityContext(Protocol):
    """The client's side of one exchange of Kerberos messages."""

    @property
    def is_complete(self) -> bool:
        """Whether both sides have proven who they are."""

    def step(self, received: bytes | None) -> bytes:
        """Return the next message; empty if there is none."""

    def unwrap(self, message: bytes) -> bytes:
        """Return the content of a signed message."""

    def wrap(self, content: bytes) -> bytes:
        """Return a signed message."""


class TicketSource(Protocol):
    """Supplies Kerberos tickets. Used by several threads."""

    def new_context(self, host: str) -> SecurityContext:
        """Return a context for an exchange with the broker of this host name.

        May block. Raises TokenUnavailable, LoginRefused.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """A Kerberos ticket, for GSSAPI."""

    tickets: TicketSource
    principal: str = ""
    """The principal of the ticket; empty if the ticket cache decides."""
    mechanism: str = "GSSAPI"


SaslLogin = PasswordLogin | TokenLogin | KerberosLogin
