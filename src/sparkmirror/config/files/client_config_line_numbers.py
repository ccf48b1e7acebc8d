"""Where a file has the keys of clients, so that an error of a connection can name file and line.

A command that starts a worker hands the lines on in the environment variable
SPARKMIRROR_WRITTEN_KEYS: drivers and executors make errors, too. It has names of keys, no values.

    mm2.properties      A->B.consumer.sasl.jaas.config, A.consumer.sasl.jaas.config,
                        A.sasl.jaas.config, else sasl.jaas.config
    a worker's file     sasl.jaas.config for its own clients, producer.sasl.jaas.config for what its
                        tasks write with; the other keys of connectors are in no file
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

from sparkmirror.config.files.properties import Properties
from sparkmirror.config.files.worker_file import is_worker_file
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES

VARIABLE: Final = "SPARKMIRROR_WRITTEN_KEYS"
_CLIENTS: Final = ("", "admin.", "consumer.", "producer.")
_CLIENT_TYPES: Final = frozenset({"admin", "consumer", "producer"})
_SOURCE_CLIENTS: Final = _CLIENT_TYPES | {f"source.{one}" for one in (*_CLIENT_TYPES, "cluster")}
_TARGET_CLIENTS: Final = _CLIENT_TYPES | {f"target.{one}" for one in (*_CLIENT_TYPES, "cluster")}
_NAMES: Final = re.compile(
    "|".join(re.escape(name) for name in sorted(CLIENT_SECURITY_NAMES, key=len, reverse=True))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfigLineNumbers:
    """The keys of clients in one file, with their lines."""

    file: str
    lines: Mapping[str, int] = field(repr=False)
    has_clusters: bool
    """Whether the keys begin with the alias of a cluster: it is an mm2.properties."""

    @classmethod
    def of_file(cls, file: Properties) -> Self:
        """Return the keys that end with the name of a client's property."""
        lines = {
            key: line for key, line in file.lines.items() if key.endswith(CLIENT_SECURITY_NAMES)
        }
        return cls(file=file.file, lines=lines, has_clusters=not is_worker_file(file))

    def locations(self, cluster: str, text: str, prefix: str | None = None) -> tuple[str, ...]:
        """Return file, line and key of each property of the cluster's clients that a text names.

        `prefix` is that of the client's keys in a worker's file; None if they are not in the file.
        """
        found: dict[str, int] = {}
        for name in dict.fromkeys(_NAMES.findall(text)):
            for group in self._candidates(cluster, name, prefix):
                written = {key: self.lines[key] for key in group if key in self.lines}
                if written:
                    found |= written
                    break
        return tuple(f"{self.file}, line {line}: {key}" for key, line in found.items())

    def _candidates(
        self, cluster: str, name: str, prefix: str | None
    ) -> tuple[tuple[str, ...], ...]:
        """Return the keys that may set a property. Keys of a later group are the more general."""
        if self.has_clusters:
            own = tuple(f"{cluster}.{client}{name}" for client in _CLIENTS)
            of_flows = tuple(key for key in self.lines if _is_of_flow(key, cluster, name))
            return (*of_flows, *own), tuple(f"{client}{name}" for client in _CLIENTS)
        return () if prefix is None else ((f"{prefix}{name}",),)


def _is_of_flow(key: str, cluster: str, name: str) -> bool:
    """Return whether a key of a flow (`A->B.…`) sets a property of the cluster's clients.

    Keys as `A->B.consumer.…` are those of both clusters. A file does not say which flow had the
    error, so the keys of all flows of the cluster count.
    """
    source, arrow, rest = key.partition("->")
    if not arrow or not rest.endswith(f".{name}"):
        return False
    target, client = _split_flow_key(rest.removesuffix(f".{name}"))
    return (cluster == source and client in _SOURCE_CLIENTS) or (
        cluster == target and client in _TARGET_CLIENTS
    )


def _split_flow_key(key: str) -> tuple[str, str]:
    """Split `B.source.consumer` into the alias and the client."""
    for client in sorted(_SOURCE_CLIENTS | _TARGET_CLIENTS, key=len, reverse=True):
        if key.endswith(f".{client}"):
            return key.removesuffix(f".{client}"), client
    return key, ""


def with_written_keys(file: Properties, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the keys of a file, for this process and those it starts."""
    keys = ClientConfigLineNumbers.of_file(file)
    value = json.dumps([keys.file, dict(keys.lines), keys.has_clusters], ensure_ascii=True)
    return {**environment, VARIABLE: value}


def written_keys_variable(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable with the keys, for executors on other hosts; empty if there is none."""
    return {VARIABLE: environment[VARIABLE]} if VARIABLE in environment else {}


def locations_in_environment(
    environment: Mapping[str, str], cluster: str, text: str, prefix: str | None
) -> tuple[str, ...]:
    """Return the locations in the file of this process; none if the process has no file."""
    value = environment.get(VARIABLE, "")
    return _read(value).locations(cluster, text, prefix) if value else ()


@lru_cache(maxsize=1)
def _read(value: str) -> ClientConfigLineNumbers:
    file, lines, has_clusters = json.loads(value)
    return ClientConfigLineNumbers(file=file, lines=lines, has_clusters=has_clusters)
