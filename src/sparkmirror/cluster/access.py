"""Where a cluster is and how it lets us in: all that a client needs to begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from sparkmirror.cluster.security import Security
from sparkmirror.errors import ConfigError


class Address(NamedTuple):
    """One broker's host and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `host:port`; an IPv6 host stands in brackets."""
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigError.of("bootstrap.servers", f"{text!r} is not of the form host:port")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The way to one cluster. `cluster` is its alias; errors are told under that name."""

    cluster: str
    bootstrap: tuple[Address, ...]
    security: Security

    @classmethod
    def from_properties(cls, cluster: str, properties: Mapping[str, str]) -> Self:
        """Read `bootstrap.servers` and the security settings, in Java's names."""
        servers = [text for text in properties.get("bootstrap.servers", "").split(",") if text]
        if not servers:
            raise ConfigError.of("bootstrap.servers", "bootstrap.servers names no broker")
        return cls(
            cluster=cluster,
            bootstrap=tuple(Address.parse(text) for text in servers),
            security=Security.from_properties(properties),
        )
