"""Claims ports of the loopback address, so that no two clusters share one.

A claim is a small file named after the port; it holds the directory of its cluster. It is valid as
long as that directory exists. Claims are taken under one lock, from a range that the system does
not use for outgoing connections, so the port of a stopped broker stays free for its restart.
Another program may still bind the port between claim and use; the code that starts the server
notices it, raises PortInUse and claims other ports.
"""

from __future__ import annotations

import os
import random
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from sparkmirror.errors import LabError
from sparkmirror.lab.processes.file_locks import locked

HOST = "127.0.0.1"
FIRST_PORT = 20000
LAST_PORT = 31999


class PortInUse(LabError):
    """Another process has bound a port of a server: claim other ports."""


def is_port_free(port: int) -> bool:
    """Whether a port of the loopback address can be bound now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


class PortRegistry:
    """The claims of one user of this computer."""

    def __init__(
        self,
        registry: Path | None = None,
        numbers: range = range(FIRST_PORT, LAST_PORT + 1),
        free: Callable[[int], bool] = is_port_free,
    ) -> None:
        self._directory = (
            registry or Path(tempfile.gettempdir()) / f"sparkmirror-ports-{os.getuid()}"
        )
        self._range = numbers
        self._is_free = free

    def claim(self, count: int, owner: Path) -> list[int]:
        """Claim ports for the cluster that lives in the directory `owner`."""
        claimed: list[int] = []
        # A random start makes it rare to meet the port of another program.
        start = random.SystemRandom().randrange(len(self._range))
        with locked(self._directory / "lock", _ignore_wait):
            self._drop_stale()
            for step in range(len(self._range)):
                if len(claimed) == count:
                    return claimed
                port = self._range[(start + step) % len(self._range)]
                if not self._claim_file(port).exists() and self._is_free(port):
                    self._claim_file(port).write_text(str(owner), encoding="utf-8")
                    claimed.append(port)
        if len(claimed) == count:
            return claimed
        raise LabError(
            f"No {count} free ports from {self._range[0]} to {self._range[-1]}:"
            " stop clusters you no longer need."
        )

    def release(self, owner: Path) -> None:
        """Release all ports of a cluster."""
        with locked(self._directory / "lock", _ignore_wait):
            for file in self._directory.glob("[0-9]*"):
                if file.read_text(encoding="utf-8") == str(owner):
                    file.unlink()

    def _drop_stale(self) -> None:
        for file in self._directory.glob("[0-9]*"):
            owner = file.read_text(encoding="utf-8")
            if not owner or not Path(owner).is_dir():
                file.unlink()

    def _claim_file(self, port: int) -> Path:
        return self._directory / str(port)


def _ignore_wait(_: str) -> None:
    """No-op: a claim takes milliseconds."""
