"""A token source with one token."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.config.secrets.password import Password
from sparkmirror.security.sasl_credentials import BearerToken


@dataclass(frozen=True, slots=True)
class FixedToken:
    """Supplies the same token always."""

    text: str

    def token(self, host: str) -> BearerToken:
        return BearerToken(value=Password(self.text))
