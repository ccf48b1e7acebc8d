"""Unsigned tokens, as Java's OAuthBearerUnsecuredLoginCallbackHandler makes them. For tests only.

Options of the login module: `unsecuredLoginStringClaim_<name>`, `unsecuredLoginNumberClaim_<name>`,
`unsecuredLoginListClaim_<name>` (its first character separates the items),
`unsecuredLoginPrincipalClaimName` (sub), `unsecuredLoginLifetimeSeconds` (3600),
`unsecuredLoginExtension_<name>`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from sparkmirror.config.secrets.jaas import SASL_JAAS_CONFIG
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.oauthbearer.jwt import unsigned_token
from sparkmirror.security.sasl_credentials import BearerToken

OPTION_PREFIX = "unsecuredLogin"
EXTENSION_PREFIX = "unsecuredLoginExtension_"
_RESERVED_CLAIMS = frozenset({"iat", "exp"})
_CLAIM_KINDS: Mapping[str, Callable[[str], Any]] = {
    "unsecuredLoginStringClaim_": str,
    "unsecuredLoginNumberClaim_": float,
    "unsecuredLoginListClaim_": lambda text: text[1:].split(text[0]) if text else [],
}


class UnsecuredTokens:
    """Makes a token for each login. Equal claims are equal sources."""

    def __init__(self, options: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        """Read the options of the login module. Raises ConfigError."""
        self._clock = clock
        self._claims = _claims(options)
        self._lifetime_s = _lifetime_s(options)
        self._extensions = {
            name.removeprefix(EXTENSION_PREFIX): value
            for name, value in options.items()
            if name.startswith(EXTENSION_PREFIX)
        }
        principal = options.get("unsecuredLoginPrincipalClaimName", "").strip() or "sub"
        if not isinstance(self._claims.get(principal), str) or not self._claims[principal]:
            raise _config_error(f"names no principal; set unsecuredLoginStringClaim_{principal}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnsecuredTokens) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(repr(self._identity()))

    def token(self, host: str) -> BearerToken:
        """Return a new token."""
        now_s = self._clock()
        claims = {"exp": now_s + self._lifetime_s, "iat": now_s, **self._claims}
        return BearerToken(value=Password(unsigned_token(claims)), extensions=self._extensions)

    def _identity(self) -> tuple[object, ...]:
        return self._claims, self._lifetime_s, self._extensions


def _claims(options: Mapping[str, str]) -> dict[str, Any]:
    claims: dict[str, Any] = {}
    for option, value in options.items():
        for prefix, convert in _CLAIM_KINDS.items():
            name = option.removeprefix(prefix)
            if name == option:
                continue
            if name in _RESERVED_CLAIMS:
                raise _config_error(f"may not set the claim {name} with {option}")
            try:
                claims[name] = convert(value)
            except ValueError:
                raise _config_error(f"has {option}, which is not a number") from None
    return claims


def _lifetime_s(options: Mapping[str, str]) -> int:
    text = options.get("unsecuredLoginLifetimeSeconds", "3600").strip()
    if not text.isdecimal() or not int(text):
        raise _config_error("has unsecuredLoginLifetimeSeconds, which is not a number above 0")
    return int(text)


def _config_error(problem: str) -> ConfigError:
    return ConfigError.of(SASL_JAAS_CONFIG, f"{SASL_JAAS_CONFIG} {problem}")
