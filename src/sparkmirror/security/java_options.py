"""`KAFKA_OPTS`: the system properties that operators give Kafka's Java programs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

KAFKA_OPTS = "KAFKA_OPTS"


def system_property(environment: Mapping[str, str], name: str) -> str:
    """Return the value of `-Dname=value` in KAFKA_OPTS; empty without it. The last one wins."""
    text = environment.get(KAFKA_OPTS, "")
    try:
        options = shlex.split(text)
    except ValueError:  # an open quote: Kafka's scripts split at blanks
        options = text.split()
    prefix = f"-D{name}="
    found = [option.removeprefix(prefix) for option in options if option.startswith(prefix)]
    return found[-1] if found else ""
