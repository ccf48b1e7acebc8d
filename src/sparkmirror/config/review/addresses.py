"""Faults of addresses: brokers (`host:port`) and REST listeners (`http://host:port`).

The tables accept any text here, as Kafka's tables do: Kafka's clients and its REST server refuse a
wrong address when they start. These checks find the same faults before the start. They do not
resolve host names, because the result depends on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.errors import ConfigFault

BOOTSTRAP_SERVERS_KEY = "bootstrap.servers"
LISTENER_KEYS = ("listeners", "admin.listeners")

_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?[0-9a-zA-Z\-%._:]+\]?:(?P<port>[0-9]+)")
_MAX_PORT = 65535
_LISTENER = re.compile(r"(?P<protocol>.*)://\[?[0-9a-zA-Z\-%._:]*\]?:-?[0-9]+")


def address_faults(servers: ParsedValue, key: str = BOOTSTRAP_SERVERS_KEY) -> Iterator[ConfigFault]:
    """Yield a fault for each broker address that a client refuses.

    A fault quotes the address: redact it if a config provider supplied the value.
    """
    for server in servers if isinstance(servers, tuple) else ():
        if not server:
            continue
        match = _ADDRESS.fullmatch(server)
        if not match:
            yield ConfigFault(
                key, f"Invalid url in {BOOTSTRAP_SERVERS_KEY}: {server}; write host:port"
            )
        elif len(match["port"]) > len("65535") or int(match["port"]) > _MAX_PORT:
            yield ConfigFault(
                key,
                f"Invalid port in {BOOTSTRAP_SERVERS_KEY}: {server}; a port is at most {_MAX_PORT}",
            )


def listener_faults(config: Mapping[str, ParsedValue]) -> Iterator[ConfigFault]:
    """Yield a fault for each listener that the REST server refuses. No fault quotes a value."""
    for key in LISTENER_KEYS:
        value = config.get(key)
        for listener in value if isinstance(value, tuple) else ():
            match = _LISTENER.fullmatch(listener)
            if not match:
                yield ConfigFault(
                    key, "Listener doesn't have the right format (protocol://hostname:port)."
                )
            elif match["protocol"].lower() not in ("http", "https"):
                yield ConfigFault(key, 'Listener protocol must be either "http" or "https".')
