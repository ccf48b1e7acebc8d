"""Addresses a REST server listens on: `http://host:port`, with an empty host for all of them.

The tables let any text pass here, as Kafka's do; Kafka then fails when its server starts. This
module knows what the server will ask for, so that a review can say it before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.errors import ConfigFault

LISTENER_KEYS = ("listeners", "admin.listeners")

_LISTENER = re.compile(r"(?P<protocol>.*)://\[?[0-9a-zA-Z\-%._:]*\]?:-?[0-9]+")


def listener_faults(config: Mapping[str, ParsedValue]) -> Iterator[ConfigFault]:
    """Find listeners that no server can be started on. The values are not quoted."""
    for key in LISTENER_KEYS:
        value = config.get(key)
        for listener in value if isinstance(value, tuple) else ():
            found = _LISTENER.fullmatch(listener)
            if not found:
                yield ConfigFault(
                    key, "Listener doesn't have the right format (protocol://hostname:port)."
                )
            elif found["protocol"].lower() not in ("http", "https"):
                yield ConfigFault(key, 'Listener protocol must be either "http" or "https".')
