"""Security settings of Java's clients, as keywords of kafka-python's SASL mechanisms.

Supports `security.protocol`, the SASL mechanisms PLAIN and SCRAM with `sasl.jaas.config`, and TLS
(`tls`). Secrets are `Password`s; only `client_kwargs` returns them as text.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sparkmirror.cluster import tls
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError

log = logging.getLogger(__name__)

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslCredentials:
    """The login for a SASL listener."""

    mechanism: str
    username: str
    password: Password


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """The security settings of clients of one cluster."""

    protocol: str = "PLAINTEXT"
    credentials: SaslCredentials | None = None
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Parse the keys of Java's clients. Raises ConfigError that names the key."""
        written = properties.get("security.protocol", "PLAINTEXT")
        protocol = written.upper()  # Java's clients accept lower case too
        if protocol not in SECURITY_PROTOCOLS:
            raise ConfigError.of(
                "security.protocol",
                f"security.protocol {written} is unknown: use one of"
                f" {', '.join(SECURITY_PROTOCOLS)}",
            )
        return cls(
            protocol=protocol,
            credentials=_sasl_credentials(properties) if protocol.startswith("SASL_") else None,
            ssl_context=tls.client_context(properties) if protocol.endswith("SSL") else None,
        )

    def client_kwargs(self) -> dict[str, Any]:
        """Return the keywords of kafka-python's SASL mechanisms, with secrets as text."""
        keywords: dict[str, Any] = {"security_protocol": self.protocol}
        if self.ssl_context is not None:
            keywords["ssl_context"] = self.ssl_context
        if self.credentials is not None:
            keywords["sasl_mechanism"] = self.credentials.mechanism
            keywords["sasl_plain_username"] = self.credentials.username
            keywords["sasl_plain_password"] = self.credentials.password.value
        return keywords


def _sasl_credentials(properties: Mapping[str, str]) -> SaslCredentials:
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in jaas.LOGIN_MODULES:
        raise ConfigError.of(
            "sasl.mechanism",
            f"sasl.mechanism {mechanism} is not supported: use one of"
            f" {', '.join(jaas.LOGIN_MODULES)}",
        )
    module, notices = jaas.parse_login_module(properties.get("sasl.jaas.config", ""))
    for notice in notices:
        log.warning("%s: %s", notice.key, notice.message)
    if module.class_name != jaas.LOGIN_MODULES[mechanism]:
        raise ConfigError.of(
            jaas.SASL_JAAS_CONFIG,
            f"{jaas.SASL_JAAS_CONFIG} names another login module than"
            f" {jaas.LOGIN_MODULES[mechanism]},"
            f" which {mechanism} needs",
        )
    missing = [name for name in ("username", "password") if name not in module.options]
    if missing:
        raise ConfigError.of(
            jaas.SASL_JAAS_CONFIG, f"{jaas.SASL_JAAS_CONFIG} lacks {' and '.join(missing)}"
        )
    return SaslCredentials(
        mechanism=mechanism,
        username=module.options["username"],
        password=Password(module.options["password"]),
    )
