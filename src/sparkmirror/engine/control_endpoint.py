"""The post: where the driver's control channel is, and the secret that opens it.

Kept in a private file for the processes that Spark starts beside the driver, and carried by every
Spark task. Spark's settings name the file, never what is in it: settings can be read by anybody
who may look at the application.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlEndpoint:
    """Address and secret of a control channel."""

    host: str
    port: int
    secret: bytes = field(repr=False)

    @property
    def address(self) -> tuple[str, int]:
        """For a socket."""
        return self.host, self.port

    def write(self, path: Path) -> None:
        """Keep it where only this user can read it."""
        value = {"host": self.host, "port": self.port, "secret": self.secret.hex()}
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        value = json.loads(path.read_text("utf-8"))
        return cls(host=value["host"], port=value["port"], secret=bytes.fromhex(value["secret"]))
