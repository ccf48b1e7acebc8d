"""Host names of the internet that stand for this computer, in the programs that a test starts.

Python's resolver answers for them. Programs in other languages do not know them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.start_module import start_module_environment

LOCAL_HOSTS_VARIABLE = "TESTS_LOCAL_HOSTS"
_LOOPBACK = "127.0.0.1"


def local_hosts_environment(hosts: tuple[str, ...], directory: Path) -> Mapping[str, str]:
    """Return an environment in which every Python process resolves these names to this computer.

    `directory` gets a module that Python imports at each start.
    """
    return start_module_environment(
        directory, __name__, resolve_local_hosts.__name__, {LOCAL_HOSTS_VARIABLE: ",".join(hosts)}
    )


def resolve_local_hosts() -> None:
    """Let this process resolve the names of its environment to this computer."""
    hosts = frozenset(filter(None, os.environ.get(LOCAL_HOSTS_VARIABLE, "").split(",")))
    if hosts:
        vars(socket).update(getaddrinfo=partial(_resolve, hosts, socket.getaddrinfo))


def _resolve(hosts: frozenset[str], resolve: Any, host: Any, *args: Any, **options: Any) -> Any:
    return resolve(_LOOPBACK if host in hosts else host, *args, **options)
