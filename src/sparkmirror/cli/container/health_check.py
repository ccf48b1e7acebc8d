"""The health check of the image: asks `/health` of the worker or mirror in this container.

The address is that of the file which a process of the container runs, or of the file given as the
argument: `listeners` with its placeholders replaced, the old `rest.port`, or port 8083. An https
listener is only connected to: this check has neither its certificate authority nor a client
certificate.

exit code   0   the answer is healthy or degraded, or asks for a login
            1   it starts, it is unhealthy, or there is no answer
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.cli.container.process_properties_file import process_properties_file
from sparkmirror.config.files.deprecated_keys import migrate_deprecated_keys
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.secrets.providers import create_providers
from sparkmirror.config.secrets.variables import expand_variables
from sparkmirror.errors import MirrorError

DEFAULT_PORT: Final = 8083
_LOOPBACK: Final = "127.0.0.1"
_ANY_HOST: Final = {"", "0.0.0.0", "::"}  # noqa: S104 - compared with, never bound to
_TIMEOUT_S: Final = 5.0
_WELL: Final = {200, 401, 403}


class HealthAddress(NamedTuple):
    """Where the REST API of the container listens."""

    scheme: str
    host: str
    port: int


def health_address(properties: Mapping[str, str], environment: Mapping[str, str]) -> HealthAddress:
    """Return the first http listener of a file, else its first listener, else port 8083.

    Of the placeholders of the file only those of the listeners are replaced. Raises ConfigError.
    """
    listeners = migrate_deprecated_keys(properties).props.get("listeners", "")
    if "${" in listeners:
        providers = create_providers(properties, environment).by_name
        listeners = expand_variables({"listeners": listeners}, providers).values["listeners"]
    found = [_address(text) for text in listeners.split(",") if text.strip()]
    found.sort(key=lambda address: address.scheme != "http")
    return found[0] if found else HealthAddress("http", _LOOPBACK, DEFAULT_PORT)


def _address(listener: str) -> HealthAddress:
    url = urllib.parse.urlsplit(listener.strip())
    host = url.hostname or ""
    return HealthAddress(
        url.scheme.lower(), _LOOPBACK if host in _ANY_HOST else host, url.port or DEFAULT_PORT
    )


def health_problem(address: HealthAddress) -> str | None:
    """Ask for the health. Return what is wrong, or None. Blocks for at most some seconds."""
    try:
        if address.scheme != "http":
            socket.create_connection((address.host, address.port), _TIMEOUT_S).close()
            return None
        connection = http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", "/health")
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        return f"{address.host}:{address.port} does not answer: {error}"
    return None if answer.status in _WELL else f"{answer.status} {text}"


def check(arguments: Sequence[str]) -> int:
    """Print a problem, if there is one, and return the exit code."""
    file = Path(arguments[0]) if arguments else process_properties_file()
    try:
        properties = load_properties(file).mapping if file else {}
        problem = health_problem(health_address(properties, os.environ))
    except (MirrorError, ValueError) as error:
        problem = str(error)
    if problem is not None:
        sys.stdout.write(f"{problem}\n")
    return 0 if problem is None else 1


if __name__ == "__main__":
    sys.exit(check(sys.argv[1:]))
