"""Addresses of brokers: `host:port`, as Kafka's clients ask for them when they start.

The tables let any text pass here, as Kafka's do. This module knows what a client will refuse, so
that a review can say it before. Whether a name can be resolved is not asked: that differs by place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.secrets.variables import find_variables
from sparkmirror.errors import ConfigFault

BOOTSTRAP_SERVERS_KEY = "bootstrap.servers"

_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?[0-9a-zA-Z\-%._:]+\]?:(?P<port>[0-9]+)")
_MAX_PORT = 65535


def address_faults(servers: ParsedValue, key: str = BOOTSTRAP_SERVERS_KEY) -> Iterator[ConfigFault]:
    """Find addresses that no client can use. Each is quoted: conceal what was fetched."""
    for server in servers if isinstance(servers, tuple) else ():
        if not server or any(find_variables(server)):
            # A placeholder that nobody could answer has a notice of its own.
            continue
        found = _ADDRESS.fullmatch(server)
        if not found:
            yield ConfigFault(
                key, f"Invalid url in {BOOTSTRAP_SERVERS_KEY}: {server}; write host:port"
            )
        elif len(found["port"]) > len("65535") or int(found["port"]) > _MAX_PORT:
            yield ConfigFault(
                key,
                f"Invalid port in {BOOTSTRAP_SERVERS_KEY}: {server}; a port is at most {_MAX_PORT}",
            )
