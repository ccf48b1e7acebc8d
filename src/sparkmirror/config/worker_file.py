"""The file of a Connect worker (connect-distributed.properties).

Knows how it is opened: old keys are read as they were meant, placeholders are expanded when the
config is asked for, and nothing expanded is kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.notices import Notice
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import Providers, declared
from sparkmirror.config.retired import modernise
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.value import Value
from sparkmirror.config.variables import Expansion, Provider, conceal, expand
from sparkmirror.errors import ConfigError

_TELLTALE = ("bootstrap.servers", "group.id", "config.storage.topic", "offset.storage.topic")


class WorkerFile:
    """One file, opened."""

    def __init__(self, file: Properties, found: Providers) -> None:
        self.file = file
        self._providers = found
        modern = modernise(file.mapping)
        self.raw = modern.props
        """Every key in today's words, with its value as written."""
        self.notices: tuple[Notice, ...] = (*file.notices, *found.notices, *modern.notices)

    def __repr__(self) -> str:
        return f"WorkerFile({self.file!r})"

    @classmethod
    def open(cls, file: Properties, environment: Mapping[str, str]) -> WorkerFile:
        """Open a file with the providers it declares. ConfigError if those do not exist."""
        return cls(file, declared(file.mapping, environment))

    def forgiving(self) -> WorkerFile:
        """The same file, but what a provider cannot read leaves the placeholder as it is."""
        return WorkerFile(self.file, self._providers.forgiving())

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers that the file declares, by name."""
        return self._providers.by_name

    def expand(self) -> Expansion:
        """The whole file with its placeholders replaced. Holds secrets."""
        return expand(self.raw, self._providers.by_name)

    def config(self) -> dict[str, Value]:
        """What the worker reads, expanded. ConfigError lists every fault. Holds secrets."""
        expanded = self.expand().values
        try:
            return DISTRIBUTED.parse(expanded)
        except ConfigError as error:
            raise ConfigError([conceal(f, self.raw, expanded) for f in error.faults]) from None


def looks_like_worker_file(file: Properties) -> bool:
    """Whether a file is a worker's, and not a dedicated one, which names clusters."""
    return "clusters" not in file.mapping and any(key in file.mapping for key in _TELLTALE)
