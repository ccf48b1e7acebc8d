"""A listener: `http://host:port`. No host means all interfaces, `[...]` is an IPv6 address."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field, replace

from sparkmirror.errors import ConfigError

_LISTENER = re.compile(
    r"(?P<protocol>https?)://(?:\[(?P<ipv6>[0-9a-fA-F:.%]+)\]|(?P<host>[^\[\]/:]*)):(?P<port>\d{1,5})/?",
    re.IGNORECASE,
)
WILDCARD_HOSTS = ("", "0.0.0.0", "::")  # noqa: S104  recognised here, not bound
_MAX_PORT = 65535
_BACKLOG = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class RestListener:
    """One address to listen on. With port 0 the operating system chooses the port."""

    protocol: str
    host: str
    port: int
    bound: socket.socket | None = field(default=None, repr=False, compare=False)
    """The socket that listens on the address, if it does already."""
    key: str = field(default="listeners", repr=False, compare=False)
    """The key of the config that has it; errors name it."""

    @classmethod
    def parse(cls, text: str, key: str = "listeners") -> RestListener:
        """Parse a listener. Raises ConfigError."""
        found = _LISTENER.fullmatch(text.strip())
        if found is None or int(found["port"]) > _MAX_PORT:
            raise ConfigError.of(
                key, f"listener {text} is not of the form http://host:port or https://..."
            )
        host = found["ipv6"] or found["host"] or ""
        protocol, port = found["protocol"].lower(), int(found["port"])
        return cls(protocol=protocol, host=host, port=port, key=key)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}"

    @property
    def is_on_all_interfaces(self) -> bool:
        """Whether every network of this computer reaches it. It is Connect's default."""
        return self.host in WILDCARD_HOSTS

    def with_port(self) -> RestListener:
        """Return the listener with the port that the operating system chooses for port 0.

        It listens on that port from now on. Raises ConfigError if that fails.
        """
        if self.port:
            return self
        bound = self.bind()
        return replace(self, port=bound.getsockname()[1], bound=bound)

    def bind(self) -> socket.socket:
        """Return a socket that listens on the address. Raises ConfigError if that fails."""
        if self.bound is not None:
            return self.bound
        try:
            return self._create_socket()
        except OSError as error:
            raise ConfigError.of(
                self.key, f"cannot listen on {self}: {error.strerror or error}"
            ) from error

    def _create_socket(self) -> socket.socket:
        if not self.host and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", self.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
            )
        if not self.host:
            return socket.create_server(("", self.port), backlog=_BACKLOG)
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        # Java uses the IPv4 address of a host that has both.
        family, _, _, _, address = sorted(found, key=lambda each: each[0] != socket.AF_INET)[0]
        return socket.create_server((str(address[0]), self.port), family=family, backlog=_BACKLOG)
