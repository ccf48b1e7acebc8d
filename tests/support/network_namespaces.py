"""Network namespaces: programs whose network can be cut like that of another computer.

Each program has a namespace with one link to this computer. A cut takes the link down: packets are
lost in both directions, of every connection, and none is closed. Needs root and `ip` (iproute2).
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


@dataclass(frozen=True, slots=True)
class NetworkNamespace:
    """A namespace and its link: `outer` is this computer's address, `inner` that of the program."""

    name: str
    outer: str
    inner: str

    @property
    def command(self) -> list[str]:
        """What to put before a command that is to run in the namespace."""
        return ["ip", "netns", "exec", self.name]

    def cut(self) -> None:
        """Take the link down."""
        _ip("link", "set", _outer_link(self.name), "down")

    def restore(self) -> None:
        """Take the link up again."""
        _ip("link", "set", _outer_link(self.name), "up")


def has_namespaces() -> bool:
    """Whether this user can make network namespaces here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"sm{secrets.token_hex(2)}"
    made = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True)
    if made.returncode == 0:
        _ip("netns", "delete", name)
    return made.returncode == 0


@contextmanager
def network_namespaces(names: Sequence[str]) -> Iterator[dict[str, NetworkNamespace]]:
    """Make a namespace for each name; they reach this computer and each other."""
    subnet = secrets.randbelow(200) + 20
    prefix = f"sm{secrets.token_hex(2)}"
    with ExitStack() as stack:
        stack.callback(_FORWARDING.write_text, _FORWARDING.read_text())
        _FORWARDING.write_text("1\n")
        made: dict[str, NetworkNamespace] = {}
        for number, name in enumerate(names):
            outer, inner = (f"10.{subnet}.{number}.{host}" for host in (1, 2))
            made[name] = NetworkNamespace(f"{prefix}{number}", outer, inner)
            stack.enter_context(_linked_namespace(made[name]))
        yield made


@contextmanager
def _linked_namespace(made: NetworkNamespace) -> Iterator[None]:
    outer, inner = _outer_link(made.name), f"{made.name}i"
    _ip("netns", "add", made.name)
    try:
        _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", made.name)
        _ip("address", "add", f"{made.outer}/30", "dev", outer)
        _ip("link", "set", outer, "up")
        within = ("-n", made.name)
        _ip(*within, "address", "add", f"{made.inner}/30", "dev", inner)
        _ip(*within, "link", "set", "lo", "up")
        _ip(*within, "link", "set", inner, "up")
        _ip(*within, "route", "add", "default", "via", made.outer)
        yield
    finally:
        _ip("netns", "delete", made.name)  # the link goes with it


def _outer_link(name: str) -> str:
    return f"{name}o"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
