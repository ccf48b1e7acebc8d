"""Where a file has the keys that an error of a connection names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sparkmirror.cli.check.connection_check import ConnectionCheck
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.tables.client.clients import CLIENT_SECURITY_NAMES

_CLIENTS = ("", "admin.", "consumer.", "producer.")
_NAMES = re.compile(
    "|".join(re.escape(name) for name in sorted(CLIENT_SECURITY_NAMES, key=len, reverse=True))
)


def add_written_keys(checks: Iterable[ConnectionCheck], file: Properties) -> list[ConnectionCheck]:
    """Return the checks, those with an error with remarks that name keys and lines of the file."""
    return [_with_keys(check, file) for check in checks]


def _with_keys(check: ConnectionCheck, file: Properties) -> ConnectionCheck:
    brokers = check.facts.brokers if check.facts else ()
    errors = [check.error, *(str(broker.error) for broker in brokers if broker.error)]
    found = {
        key: line
        for error in errors
        for key, line in _keys_of_error(error, check.cluster, file.lines)
    }
    remarks = [f"{file.file}, line {line}: {key}" for key, line in found.items()]
    return replace(check, remarks=(*check.remarks, *remarks))


def _keys_of_error(error: str, cluster: str, lines: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the keys, with their lines, that set a property whose name is in the error."""
    for name in dict.fromkeys(_NAMES.findall(error)):
        for prefix in (f"{cluster}.", ""):
            for client in _CLIENTS:
                key = f"{prefix}{client}{name}"
                if key in lines:
                    yield key, lines[key]
