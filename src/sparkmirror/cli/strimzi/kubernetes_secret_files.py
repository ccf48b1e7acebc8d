"""Secrets of Kubernetes as files: a directory for each Secret, a file for each key. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

DIRECTORY_PROVIDER: Final = {
    "config.providers": "dir",
    "config.providers.dir.class": (
        "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
    ),
}


_SECRET_PLACEHOLDER = re.compile(r"\$\{(?:strimzi)?secrets:(?:[^/:}]+/)?([^:}]+):([^}]+)\}")


class SecretKey(NamedTuple):
    """A key of a Secret."""

    secret: str
    key: str


@dataclass(slots=True, kw_only=True)
class SecretFiles:
    """Where secrets are mounted, which keys are known, and which ones the properties name."""

    directory: str
    known_keys: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """The keys of the Secrets that are in the same YAML stream."""
    used: list[SecretKey] = field(default_factory=list)
    has_placeholders: bool = False

    def path(self, secret: str, key: str) -> str:
        """Return the file of a key, and note that it is needed."""
        if SecretKey(secret, key) not in self.used:
            self.used.append(SecretKey(secret, key))
        return f"{self.directory}/{secret}/{key}"

    def placeholder(self, secret: str, key: str) -> str:
        """Return what a config provider replaces by the content of the file."""
        self.path(secret, key)
        self.has_placeholders = True
        return f"${{dir:{self.directory}/{secret}:{key}}}"

    def with_files(self, value: str) -> str:
        """Return the value with the placeholders of Strimzi's own provider as files."""
        return _SECRET_PLACEHOLDER.sub(lambda found: self.placeholder(*found.groups()), value)

    def matching_keys(self, secret: str, pattern: str) -> list[str]:
        """Return the known keys of a Secret that match a pattern such as `*.crt`."""
        return sorted(key for key in self.known_keys.get(secret, ()) if fnmatchcase(key, pattern))
