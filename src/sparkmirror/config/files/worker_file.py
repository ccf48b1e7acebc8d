"""The file of a Connect worker (connect-distributed.properties).

Knows how it is opened: old keys are read as they were meant, placeholders are expanded when the
config is asked for, and nothing expanded is kept.
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
    """One file, opened."""

    def __init__(self, file: Properties, found: ConfigProviders) -> None:
        self.properties = file
        self._providers = found
        modern = migrate_deprecated_keys(file.mapping)
        self.raw = modern.props
        """Every key in today's words, with its value as written."""
        self.notices: tuple[Notice, ...] = (*file.notices, *found.notices, *modern.notices)

    def __repr__(self) -> str:
        return f"WorkerFile({self.properties!r})"

    @classmethod
    def open(cls, file: Properties, environment: Mapping[str, str]) -> WorkerFile:
        """Open a file with the providers it declares. ConfigError if those do not exist."""
        return cls(file, create_providers(file.mapping, environment))

    def lenient(self) -> WorkerFile:
        """The same file, but what a provider cannot read leaves the placeholder as it is."""
        return WorkerFile(self.properties, self._providers.lenient())

    @property
    def providers(self) -> Mapping[str, ConfigProvider]:
        """The providers that the file declares, by name."""
        return self._providers.by_name

    def expand(self) -> ExpandedConfig:
        """The whole file with its placeholders replaced. Holds secrets."""
        return expand_variables(self.raw, self._providers.by_name)

    def config(self) -> dict[str, ParsedValue]:
        """What the worker reads, expanded. ConfigError lists every fault. Holds secrets."""
        expanded = self.expand().values
        try:
            return DISTRIBUTED.parse(expanded)
        except ConfigError as error:
            raise ConfigError([redact_fault(f, self.raw, expanded) for f in error.faults]) from None


def is_worker_file(file: Properties) -> bool:
    """Whether a file is a worker's, and not a dedicated one, which names clusters."""
    return "clusters" not in file.mapping and any(key in file.mapping for key in _TYPICAL_KEYS)
