"""Addresses of brokers: `host:port`, as Kafka's clients ask for them when they start.

The tables let any text pass here, as Kafka's do. This module knows what a client will refuse, so
that a review can say it before. Whether a name can be resolved is not asked: that differs by place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkmirror.config.value import Value
from sparkmirror.config.variables import variables_in
from sparkmirror.errors import Fault

KEY = "bootstrap.servers"

_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?[0-9a-zA-Z\-%._:]+\]?:(?P<port>[0-9]+)")
_HIGHEST_PORT = 65535


def address_faults(servers: Value, key: str = KEY) -> Iterator[Fault]:
    """Find addresses that no client can use. Each is quoted: conceal what was fetched."""
    for server in servers if isinstance(servers, tuple) else ():
        if not server or any(variables_in(server)):
            # A placeholder that nobody could answer has a notice of its own.
            continue
        found = _ADDRESS.fullmatch(server)
        if not found:
            yield Fault(key, f"Invalid url in {KEY}: {server}; write host:port")
        elif len(found["port"]) > len("65535") or int(found["port"]) > _HIGHEST_PORT:
            yield Fault(key, f"Invalid port in {KEY}: {server}; a port is at most {_HIGHEST_PORT}")
