"""What one `copy` is asked to do: options and client files read together, as one frozen value.

Knows how a client file and the options beside it make the properties of a cluster, and how names
follow from aliases. Talks to no cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.files import properties
from sparkmirror.config.secrets import providers, variables
from sparkmirror.copy.delivery import DEFAULT_COMMIT_INTERVAL_S, DeliveryMode
from sparkmirror.copy.job import DataLossPolicy, StartPosition
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.topics.filters import ConfigPropertyFilter, TopicFilter
from sparkmirror.mirror.topics.internal_topics import InternalTopic, connect_topics
from sparkmirror.mirror.topics.replication_policy import ReplicationPolicy
from sparkmirror.mirror.topics.topic_selection import TopicSelection
from sparkmirror.model import SourceAndTarget

BOOTSTRAP = "bootstrap.servers"
DEFAULT_CONNECTOR = "MirrorSourceConnector"
"""What MirrorMaker 2 calls its source connector in dedicated mode: it finds our offsets by it."""

_FILE_PROVIDERS = ("FileConfigProvider", "DirectoryConfigProvider")
"""Providers whose paths are files."""
_STORE_LOCATION_KEYS = frozenset({"ssl.truststore.location", "ssl.keystore.location"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """The client properties of one cluster: raw, and with every placeholder replaced."""

    raw: Mapping[str, str] = field(repr=False)
    expanded: Mapping[str, str] = field(repr=False)
    file: str = ""
    notices: tuple[str, ...] = ()

    @classmethod
    def read(cls, file: Path | None, servers: str | None, environ: Mapping[str, str]) -> Self:
        """Read the file, if there is one; brokers that were named beside it win."""
        raw: dict[str, str] = {}
        if file is not None:
            raw = dict(properties.load_properties(file).mapping)
        if servers is not None:
            raw[BOOTSTRAP] = servers
        where = str(file or "")
        try:
            declared = providers.create_providers(raw, environ)
            expansion = variables.expand_variables(raw, declared.by_name)
        except ConfigError as error:
            raise ConfigError(error.faults, where=where) from error
        notices = (*declared.notices, *expansion.unresolved)
        return cls(
            raw=raw,
            expanded=expansion.values,
            file=where,
            notices=tuple(f"{where}: {notice}" for notice in notices),
        )

    def with_absolute_paths(self) -> dict[str, str]:
        """The raw properties for processes that run elsewhere: paths are absolute.

        Placeholders stay what they are; whoever connects resolves them then and there.
        """
        names = {
            name.strip() for name in self.raw.get(providers.CONFIG_PROVIDERS_KEY, "").split(",")
        }
        readers = {
            name
            for name in names
            if self.raw.get(f"{providers.CONFIG_PROVIDERS_KEY}.{name}.class", "").endswith(
                _FILE_PROVIDERS
            )
        }

        def anchored(variable: variables.ConfigVariable) -> variables.ConfigVariable:
            is_file = variable.provider in readers and variable.path
            return variable._replace(path=_absolute(variable.path)) if is_file else variable

        return {
            key: _absolute(value)
            if key in _STORE_LOCATION_KEYS and "${" not in value
            else variables.rewrite_variables(value, anchored)
            for key, value in self.raw.items()
        }

    def access(self, alias: str) -> ClusterAccess:
        """The way to the cluster. Faults name the file and the key, never a secret."""
        try:
            return ClusterAccess.from_properties(alias, self.expanded)
        except ConfigError as error:
            faults = [
                variables.redact_fault(fault, self.raw, self.expanded) for fault in error.faults
            ]
            raise ConfigError(faults, where=self.file or alias) from error


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRequest:
    """Everything that was asked for."""

    flow: SourceAndTarget
    source: ClientFile
    target: ClientFile
    policy: ReplicationPolicy
    topic_filter: TopicFilter
    config_filter: ConfigPropertyFilter
    patterns: tuple[str, ...]
    tasks_max: int
    connector: str = DEFAULT_CONNECTOR
    start: StartPosition | None = None
    on_loss: DataLossPolicy = DataLossPolicy.HALT
    read_committed: bool = True
    delivery: DeliveryMode = DeliveryMode.SEQUENCED
    commit_interval_s: float = DEFAULT_COMMIT_INTERVAL_S
    bytes_per_s: int = 0
    """For all tasks together; 0 means no limit."""
    replication_factor: int | None = None
    """Of new topics; None means as at the source, as far as the target has brokers for it."""

    @property
    def selection(self) -> TopicSelection:
        """Which topics are meant. Heartbeats are copied if asked for by name, as any other."""
        return TopicSelection(
            flow=self.flow,
            policy=self.policy,
            topic_filter=self.topic_filter,
            replicate_heartbeats=False,
        )

    @property
    def group_id(self) -> str:
        """The worker group of a dedicated MirrorMaker 2 for the same flow."""
        return f"{self.flow.source}-mm2"

    @property
    def offsets_topic(self) -> InternalTopic:
        """Where positions are kept: that MirrorMaker 2's own offsets topic."""
        _, offsets, _ = connect_topics(self.flow)
        return offsets
