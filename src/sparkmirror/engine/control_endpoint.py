"""Address, protocol and secret of the driver's control server.

The driver writes them to a private file for Spark's planner process, and every Spark task carries
them. Spark's settings hold only the path of the file, because all users of Spark's web UI can read
settings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sparkmirror.copy.control.handshake import ControlProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlEndpoint:
    """Where the control server listens, its protocol, and the secret that a client must know."""

    host: str
    port: int
    protocol: ControlProtocol
    secret: bytes = field(repr=False)
    gateway_port: int = 0
    """The port of py4j's gateway to Spark's JVM, for slots on this computer; 0 for others."""
    gateway_secret: str = field(default="", repr=False)
    query_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Spark's settings for queries, for slots that start a Spark of their own."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, as `socket.create_connection` takes them."""
        return self.host, self.port

    def write(self, path: Path) -> None:
        """Create the file; only this user can read it. Raises FileExistsError."""
        value = {
            "host": self.host,
            "port": self.port,
            "protocol": self.protocol,
            "secret": self.secret.hex(),
            "gateway_port": self.gateway_port,
            "gateway_secret": self.gateway_secret,
            "query_settings": dict(self.query_settings),
        }
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file that `write` created."""
        value = json.loads(path.read_text("utf-8"))
        return cls(
            host=value["host"],
            port=value["port"],
            protocol=ControlProtocol(value["protocol"]),
            secret=bytes.fromhex(value["secret"]),
            gateway_port=value["gateway_port"],
            gateway_secret=value["gateway_secret"],
            query_settings=value["query_settings"],
        )
