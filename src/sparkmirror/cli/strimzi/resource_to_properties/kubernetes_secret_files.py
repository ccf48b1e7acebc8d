"""Secrets of Kubernetes as files: a directory for each Secret, a file for each key. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from sparkmirror.cli.strimzi.config_provider_kinds import DIRECTORY, PROVIDER_CLASSES
from sparkmirror.cli.strimzi.kubernetes_secret_key import SecretKey
from sparkmirror.config.secrets.variables import ConfigVariable


@dataclass(slots=True, kw_only=True)
class SecretFiles:
    """Where secrets are mounted, which keys are known, and which ones the properties name."""

    directory: str
    known_keys: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """The keys of the Secrets that are in the same YAML stream."""
    used: list[SecretKey] = field(default_factory=list)
    providers: set[str] = field(default_factory=set)
    """The names of the config providers that the properties use."""

    def path(self, secret: str, key: str) -> str:
        """Return the file of a key, and note that it is needed."""
        if SecretKey(secret, key) not in self.used:
            self.used.append(SecretKey(secret, key))
        return f"{self.directory}/{secret}/{key}"

    def variable(self, secret: str, key: str) -> ConfigVariable:
        """Return what a config provider replaces by the content of the file."""
        self.path(secret, key)
        self.providers.add(DIRECTORY)
        return ConfigVariable(DIRECTORY, f"{self.directory}/{secret}", key)

    def placeholder(self, secret: str, key: str) -> str:
        """Return the same as text."""
        return str(self.variable(secret, key))

    def matching_keys(self, secret: str, pattern: str) -> list[str]:
        """Return the known keys of a Secret that match a pattern such as `*.crt`."""
        return sorted(key for key in self.known_keys.get(secret, ()) if fnmatchcase(key, pattern))

    def provider_properties(self) -> dict[str, str]:
        """Return the declaration of the config providers that the properties use."""
        names = [name for name in PROVIDER_CLASSES if name in self.providers]
        if not names:
            return {}
        classes = {f"config.providers.{name}.class": PROVIDER_CLASSES[name] for name in names}
        return {"config.providers": ",".join(names)} | classes
