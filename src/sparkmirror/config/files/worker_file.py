"""The file of a Connect worker (connect-distributed.properties).

Opening a file replaces deprecated keys. Placeholders are expanded at each call; nothing expanded
is kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.files.deprecated_keys import migrate_deprecated_keys
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.notices import Notice
from sparkmirror.config.secrets.providers import ConfigProviders, create_providers
from sparkmirror.config.secrets.variables import (
    ConfigProvider,
    ExpandedConfig,
    expand_variables,
    redact_fault,
)
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.errors import ConfigError

_TYPICAL_KEYS = ("bootstrap.servers", "group.id", "config.storage.topic", "offset.storage.topic")


class WorkerFile:
    """One opened file."""

    def __init__(self, file: Properties, providers: ConfigProviders) -> None:
        self.properties = file
        self._providers = providers
        migrated = migrate_deprecated_keys(file.mapping)
        self.raw = migrated.props
        """Every key, without deprecated ones, with its value as written."""
        self.notices: tuple[Notice, ...] = (
            *file.notices,
            *providers.notices,
            *migrated.notices,
        )

    def __repr__(self) -> str:
        return f"WorkerFile({self.properties!r})"

    @classmethod
    def open(cls, file: Properties, environment: Mapping[str, str]) -> WorkerFile:
        """Open a file with the providers that it declares. Raises ConfigError if one is invalid."""
        return cls(file, create_providers(file.mapping, environment))

    def lenient(self) -> WorkerFile:
        """The same file, but a placeholder that a provider cannot read stays as text."""
        return WorkerFile(self.properties, self._providers.lenient())

    @property
    def providers(self) -> Mapping[str, ConfigProvider]:
        """The providers that the file declares, by name."""
        return self._providers.by_name

    def expand(self) -> ExpandedConfig:
        """The whole file with its placeholders replaced. Holds secrets."""
        return expand_variables(self.raw, self._providers.by_name)

    def config(self) -> dict[str, ParsedValue]:
        """The values of the worker's table, expanded. Raises ConfigError with every fault."""
        expanded = self.expand().values
        try:
            return DISTRIBUTED.parse(expanded)
        except ConfigError as error:
            raise ConfigError([redact_fault(f, self.raw, expanded) for f in error.faults]) from None


def is_worker_file(file: Properties) -> bool:
    """Whether a file is a worker's file. A dedicated file has the key `clusters`."""
    return "clusters" not in file.mapping and any(key in file.mapping for key in _TYPICAL_KEYS)
