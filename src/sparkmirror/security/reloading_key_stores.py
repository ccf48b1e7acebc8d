"""Security settings whose key store and trust store are read again when their files change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from sparkmirror.security.client_security import ClientSecurity, ssl_factory
from sparkmirror.security.tls.reloading_ssl_context import ReloadingSslContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadingKeyStores:
    """A SecuritySource of fixed properties. Connections share a context until a file changes."""

    security: ClientSecurity
    """The settings at the start."""
    factory: ReloadingSslContext | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], environment: Mapping[str, str] = os.environ
    ) -> Self:
        """Parse the keys of Java's clients. Raises ConfigError that names the key."""
        factory = ssl_factory(properties)
        return cls(
            security=ClientSecurity.with_context(properties, environment, factory), factory=factory
        )

    @property
    def protocol(self) -> str:
        """`security.protocol`."""
        return self.security.protocol

    def current(self) -> ClientSecurity:
        """Return the settings for the next connection."""
        context = None if self.factory is None else self.factory.current()
        if context is self.security.ssl_context:
            return self.security
        return replace(self.security, ssl_context=context)
