"""Where a token comes from. `RefreshingTokens` keeps it and renews it."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

from sparkmirror.config.secrets.password import Password
from sparkmirror.security.oauthbearer.jwt import read_expiry
from sparkmirror.security.sasl_credentials import TokenUnavailable

DEFAULT_LIFETIME_S = 300.0
"""The lifetime of a token that says nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedToken:
    """A token, when it was retrieved, and until when it is valid, in seconds since the epoch."""

    value: Password
    retrieved_at_s: float
    expires_at_s: float
    extensions: Mapping[str, str] = field(default_factory=dict)
    """SASL extensions of this token, besides those of the login."""

    @classmethod
    def parse(cls, token: str, lifetime_s: float | None = None, now_s: float | None = None) -> Self:
        """Read `exp` of the token; without it, the token lives for `lifetime_s`.

        Raises TokenUnavailable if the text is no token, or if the token has expired.
        """
        now_s = time.time() if now_s is None else now_s
        if not is_token_text(token):
            raise TokenUnavailable("what was retrieved is not a token: it holds blanks or is empty")
        expires_at_s = read_expiry(token)
        if expires_at_s is None:
            expires_at_s = now_s + (lifetime_s or DEFAULT_LIFETIME_S)
        if expires_at_s <= now_s:
            raise TokenUnavailable(
                f"the token that was retrieved expired {now_s - expires_at_s:.0f} seconds ago by"
                " this host's clock; check the clock and the issuer of the token"
            )
        return cls(value=Password(token), retrieved_at_s=now_s, expires_at_s=expires_at_s)


class TokenRetriever(Hashable, Protocol):
    """Retrieves tokens. Two that are equal retrieve the same token: it is retrieved once."""

    @property
    def name(self) -> str:
        """Where the tokens come from, as logs and errors show it. No secret."""

    def retrieve(self) -> RetrievedToken:
        """Return a new token. Blocks. Raises TokenUnavailable."""


def is_token_text(text: str) -> bool:
    """Whether the text can be a token in the first message of OAUTHBEARER."""
    return bool(text) and text.isascii() and all("!" <= char <= "~" for char in text)
