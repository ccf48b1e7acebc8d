"""The security settings of Java's clients, as the connections of `wire` use them.

A connection reads the settings again each time it opens, so a rotated store, a renewed token and a
changed password are used at the next connection.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

from sparkmirror.errors import ConfigError
from sparkmirror.security.login_config import read_login
from sparkmirror.security.sasl_credentials import SaslLogin
from sparkmirror.security.tls.reloading_ssl_context import ReloadingSslContext, client_ssl_factory
from sparkmirror.security.tls.ssl_config import SslConfig

SECURITY_PROTOCOL = "security.protocol"
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """The security settings of clients of one cluster, as they are now."""

    protocol: str = "PLAINTEXT"
    login: SaslLogin | None = None
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert self.protocol in SECURITY_PROTOCOLS
        assert (self.login is not None) == self.protocol.startswith("SASL_")
        assert (self.ssl_context is not None) == self.protocol.endswith("SSL")

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], environment: Mapping[str, str] = os.environ
    ) -> Self:
        """Parse the keys of Java's clients. Raises ConfigError that names the key.

        The environment holds KAFKA_OPTS, and what logins may use.
        """
        return cls.with_context(properties, environment, ssl_factory(properties))

    @classmethod
    def with_context(
        cls,
        properties: Mapping[str, str],
        environment: Mapping[str, str],
        factory: ReloadingSslContext | None,
    ) -> Self:
        """Parse the keys of the login; the factory has read those of TLS. Raises ConfigError."""
        protocol = read_protocol(properties)
        return cls(
            protocol=protocol,
            login=read_login(properties, environment) if protocol.startswith("SASL_") else None,
            ssl_context=None if factory is None else factory.current(),
        )

    def current(self) -> ClientSecurity:
        """Return these settings: they do not change."""
        return self


class SecuritySource(Protocol):
    """Supplies the security settings of one cluster's clients. Used by several threads."""

    @property
    def protocol(self) -> str:
        """`security.protocol`."""

    def current(self) -> ClientSecurity:
        """Return the settings for the next connection. Raises ConfigError."""


def ssl_factory(properties: Mapping[str, str]) -> ReloadingSslContext | None:
    """Return the TLS contexts of a client; None without TLS. Raises ConfigError."""
    if not read_protocol(properties).endswith("SSL"):
        return None
    return client_ssl_factory(SslConfig.from_properties(properties))


def read_protocol(properties: Mapping[str, str]) -> str:
    """Return `security.protocol` in upper case. Raises ConfigError."""
    written = properties.get(SECURITY_PROTOCOL, "PLAINTEXT")
    protocol = written.upper()  # Java's clients accept lower case too
    if protocol not in SECURITY_PROTOCOLS:
        raise ConfigError.of(
            SECURITY_PROTOCOL,
            f"{SECURITY_PROTOCOL} {written} is unknown: use one of {', '.join(SECURITY_PROTOCOLS)}",
        )
    return protocol
