"""The bootstrap servers and the security settings of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from sparkmirror.config.event_hubs_defaults import event_hubs_request_timeout_s
from sparkmirror.errors import ConfigError
from sparkmirror.security.client_security import SecuritySource
from sparkmirror.security.reloading_key_stores import ReloadingKeyStores
from sparkmirror.security.security_with_config_providers import SecurityWithConfigProviders
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import Router


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """How clients reach one cluster. `cluster` is its alias, which errors name."""

    cluster: str
    bootstrap_servers: tuple[Address, ...]
    security: SecuritySource
    file_prefix: str | None = None
    """The prefix of the clients' keys in a worker's file; None if they are not in that file."""
    request_timeout_s: float | None = None
    """How long one attempt of a request may take; None: as long as at any other cluster."""

    @classmethod
    def from_properties(
        cls, cluster: str, properties: Mapping[str, str], *, file_prefix: str | None = None
    ) -> Self:
        """Parse `bootstrap.servers` and the security keys of Java's clients. Raises ConfigError."""
        servers = [text for text in properties.get("bootstrap.servers", "").split(",") if text]
        if not servers:
            raise ConfigError.of("bootstrap.servers", "bootstrap.servers names no broker")
        return cls(
            cluster=cluster,
            bootstrap_servers=tuple(_parse_address(text) for text in servers),
            security=ReloadingKeyStores.from_properties(properties),
            file_prefix=file_prefix,
            request_timeout_s=event_hubs_request_timeout_s(properties),
        )

    @classmethod
    def reloading(cls, cluster: str, read: Callable[[], Mapping[str, str]]) -> Self:
        """Parse the properties that `read` returns. Each connection reads the security keys again.

        Raises ConfigError. The bootstrap servers stay those of now. This is for the clients of a
        worker: its file has their keys without a prefix.
        """
        made = cls.from_properties(cluster, read(), file_prefix="")
        return replace(made, security=SecurityWithConfigProviders(cluster, read))

    def new_router(self, client_id: str = "sparkmirror") -> Router:
        """Return a router for one thread. It connects with its first call."""
        return Router(self.client_config(client_id), self.bootstrap_servers)

    def client_config(self, client_id: str) -> ClientConfig:
        """Return how a client connects."""
        return ClientConfig(
            cluster=self.cluster,
            security=self.security,
            client_id=client_id,
            file_prefix=self.file_prefix,
            request_timeout_s=self.request_timeout_s,
        )


def _parse_address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise ConfigError.of("bootstrap.servers", str(error)) from error
