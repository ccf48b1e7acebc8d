"""How to be let in: Java's client properties made into what the client library takes.

Knows `security.protocol`, the SASL mechanisms PLAIN and SCRAM with their JAAS line, and TLS
through `tls.py`. Secrets are `Password`s here and text only in `keywords`.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sparkmirror.cluster import tls
from sparkmirror.config import jaas
from sparkmirror.config.password import Password
from sparkmirror.errors import ConfigError

log = logging.getLogger(__name__)

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who we are, for a SASL listener."""

    mechanism: str
    username: str
    password: Password


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """How one cluster lets us in."""

    protocol: str = "PLAINTEXT"
    login: Login | None = None
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read Java's names; ConfigError names the property that will not do."""
        protocol = properties.get("security.protocol", "PLAINTEXT")
        if protocol not in PROTOCOLS:
            raise ConfigError.of(
                "security.protocol",
                f"security.protocol {protocol} is unknown: use one of {', '.join(PROTOCOLS)}",
            )
        return cls(
            protocol=protocol,
            login=_login(properties) if protocol.startswith("SASL_") else None,
            tls=tls.context(properties) if protocol.endswith("SSL") else None,
        )

    def keywords(self) -> dict[str, Any]:
        """Say it in the client library's words."""
        words: dict[str, Any] = {"security_protocol": self.protocol}
        if self.tls is not None:
            words["ssl_context"] = self.tls
        if self.login is not None:
            words["sasl_mechanism"] = self.login.mechanism
            words["sasl_plain_username"] = self.login.username
            words["sasl_plain_password"] = self.login.password.value
        return words


def _login(properties: Mapping[str, str]) -> Login:
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in jaas.MODULES:
        raise ConfigError.of(
            "sasl.mechanism",
            f"sasl.mechanism {mechanism} is not supported: use one of {', '.join(jaas.MODULES)}",
        )
    module, notices = jaas.login_module(properties.get("sasl.jaas.config", ""))
    for notice in notices:
        log.warning("%s: %s", notice.key, notice.message)
    if module.module != jaas.MODULES[mechanism]:
        raise ConfigError.of(
            jaas.KEY,
            f"{jaas.KEY} names another login module than {jaas.MODULES[mechanism]},"
            f" which {mechanism} needs",
        )
    missing = [name for name in ("username", "password") if name not in module.options]
    if missing:
        raise ConfigError.of(jaas.KEY, f"{jaas.KEY} lacks {' and '.join(missing)}")
    return Login(
        mechanism=mechanism,
        username=module.options["username"],
        password=Password(module.options["password"]),
    )
