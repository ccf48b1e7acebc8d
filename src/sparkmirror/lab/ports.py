"""Ports of the loopback address that no two clusters share, not even while a broker is down.

A claim is a small file named after the port, holding the directory of the cluster it belongs to;
it counts as long as that directory exists, so it lapses by itself when the cluster is cleared
away, however that came about. Claims are taken under one lock, out of a range that the system
does not hand to outgoing connections: the port of a stopped broker stays free for its return.
A stranger may still be quicker between claim and use; whoever starts the broker sees that and
claims anew.
"""

from __future__ import annotations

import os
import random
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from sparkmirror.errors import LabError
from sparkmirror.lab.locks import locked

HOST = "127.0.0.1"
FIRST = 20000
LAST = 31999


def is_free(port: int) -> bool:
    """Tell whether nobody listens or lingers on a port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


class Ports:
    """The claims of one user of this computer."""

    def __init__(
        self,
        registry: Path | None = None,
        numbers: range = range(FIRST, LAST + 1),
        free: Callable[[int], bool] = is_free,
    ) -> None:
        self._registry = (
            registry or Path(tempfile.gettempdir()) / f"sparkmirror-ports-{os.getuid()}"
        )
        self._numbers = numbers
        self._free = free

    def claim(self, count: int, owner: Path) -> list[int]:
        """Claim ports for the cluster that lives in the directory `owner`."""
        claimed: list[int] = []
        # Any starting point will do; a random one makes it rare to meet a stranger's port.
        start = random.SystemRandom().randrange(len(self._numbers))
        with locked(self._registry / "lock", _wait_quietly):
            self._drop_lapsed()
            for step in range(len(self._numbers)):
                if len(claimed) == count:
                    return claimed
                port = self._numbers[(start + step) % len(self._numbers)]
                if not self._file(port).exists() and self._free(port):
                    self._file(port).write_text(str(owner), encoding="utf-8")
                    claimed.append(port)
        if len(claimed) == count:
            return claimed
        raise LabError(
            f"No {count} free ports from {self._numbers[0]} to {self._numbers[-1]}:"
            " stop clusters you no longer need."
        )

    def release(self, owner: Path) -> None:
        """Give back all ports of a cluster."""
        with locked(self._registry / "lock", _wait_quietly):
            for file in self._registry.glob("[0-9]*"):
                if file.read_text(encoding="utf-8") == str(owner):
                    file.unlink()

    def _drop_lapsed(self) -> None:
        for file in self._registry.glob("[0-9]*"):
            owner = file.read_text(encoding="utf-8")
            if not owner or not Path(owner).is_dir():
                file.unlink()

    def _file(self, port: int) -> Path:
        return self._registry / str(port)


def _wait_quietly(_: str) -> None:
    """Claims take milliseconds; nobody needs to hear of the wait."""
