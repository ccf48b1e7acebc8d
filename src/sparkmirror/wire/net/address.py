"""The host and port of a broker."""

from __future__ import annotations

from typing import NamedTuple, Self

MAX_PORT = 65_535


class Address(NamedTuple):
    """One broker's host and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `host:port`, with an IPv6 host in brackets. Raises ValueError."""
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"{text!r} is not of the form host:port")
        if not 1 <= int(port) <= MAX_PORT:
            raise ValueError(f"the port of {text!r} is not between 1 and {MAX_PORT}")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))
