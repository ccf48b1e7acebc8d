"""The request of one `copy`: its options and client files as one frozen value.

A client file and the options beside it make the client properties of a cluster; the aliases make
the names of the internal topics. This module connects to no cluster.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypedDict

import click

from sparkmirror.cli.copy.options import import_policy
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.files import properties
from sparkmirror.config.secrets import providers, variables
from sparkmirror.config.tables.plugins.filters import CONFIG_FILTER, TOPIC_FILTER
from sparkmirror.copy.delivery import DEFAULT_COMMIT_INTERVAL_S, DeliveryMode
from sparkmirror.copy.job import DataLossPolicy, StartPosition
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.topics.filters import (
    ConfigPropertyFilter,
    DefaultConfigPropertyFilter,
    DefaultTopicFilter,
    TopicFilter,
)
from sparkmirror.mirror.topics.internal_topics import InternalTopic, connect_topics
from sparkmirror.mirror.topics.replication_policy import (
    ReplicationPolicy,
    ReplicationPolicyConfig,
    create_policy,
)
from sparkmirror.mirror.topics.topic_selection import TopicSelection
from sparkmirror.model import SourceAndTarget

BOOTSTRAP = "bootstrap.servers"
DEFAULT_CONNECTOR = "MirrorSourceConnector"
"""The name of MirrorMaker 2's source connector in dedicated mode. With the same name MirrorMaker 2
finds the offsets that a copy stored."""

_FILE_PROVIDERS = ("FileConfigProvider", "DirectoryConfigProvider")
"""Config providers whose variables name a file."""
_STORE_LOCATION_KEYS = frozenset({"ssl.truststore.location", "ssl.keystore.location"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """The client properties of one cluster: raw, and with every variable replaced by its value."""

    raw: Mapping[str, str] = field(repr=False)
    expanded: Mapping[str, str] = field(repr=False)
    file: str = ""
    notices: tuple[str, ...] = ()

    @classmethod
    def read(cls, file: Path | None, servers: str | None, environ: Mapping[str, str]) -> Self:
        """Read the file, if one is given. `servers` replaces the brokers that the file names."""
        raw: dict[str, str] = {}
        if file is not None:
            raw = dict(properties.load_properties(file).mapping)
        if servers is not None:
            raw[BOOTSTRAP] = servers
        file_name = str(file or "")
        try:
            declared = providers.create_providers(raw, environ)
            expansion = variables.expand_variables(raw, declared.by_name)
        except ConfigError as error:
            raise ConfigError(error.faults, where=file_name) from error
        notices = (*declared.notices, *expansion.unresolved)
        return cls(
            raw=raw,
            expanded=expansion.values,
            file=file_name,
            notices=tuple(f"{file_name}: {notice}" for notice in notices),
        )

    def with_absolute_paths(self) -> dict[str, str]:
        """The raw properties with absolute paths, for processes with another working directory.

        Variables such as `${file:…}` stay; the process that connects resolves them.
        """
        names = {
            name.strip() for name in self.raw.get(providers.CONFIG_PROVIDERS_KEY, "").split(",")
        }
        file_providers = {
            name
            for name in names
            if self.raw.get(f"{providers.CONFIG_PROVIDERS_KEY}.{name}.class", "").endswith(
                _FILE_PROVIDERS
            )
        }

        def with_absolute_path(variable: variables.ConfigVariable) -> variables.ConfigVariable:
            is_file = variable.provider in file_providers and variable.path
            return variable._replace(path=_absolute(variable.path)) if is_file else variable

        return {
            key: _absolute(value)
            if key in _STORE_LOCATION_KEYS and "${" not in value
            else variables.rewrite_variables(value, with_absolute_path)
            for key, value in self.raw.items()
        }

    def access(self, alias: str) -> ClusterAccess:
        """The cluster's address and login.

        Raises ConfigError, which names the file and the key, never a secret.
        """
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
    """What to copy, between which clusters, and how."""

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
    """Of all tasks together; 0 means no limit."""
    replication_factor: int | None = None
    """Of new topics. None: the source topic's, limited by the number of target brokers."""

    @property
    def selection(self) -> TopicSelection:
        """The topics to copy. Heartbeat topics are copied only if a pattern matches them."""
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
        """The topic that stores positions: the offsets topic of that MirrorMaker 2."""
        _, offsets, _ = connect_topics(self.flow)
        return offsets


class CopyOptions(TypedDict):
    """The values of the options, as click passes them; None if an option is not given."""

    source_servers: str | None
    target_servers: str | None
    source_config: Path | None
    target_config: Path | None
    source_alias: str
    target_alias: str
    topics: tuple[str, ...]
    exclude: tuple[str, ...] | None
    policy: str
    start: StartPosition | None
    rate: int | None
    tasks: int | None
    on_loss: str
    read_uncommitted: bool
    exactly_once: bool
    commit_interval: int | None
    replication_factor: int | None
    name: str | None


def build_request(options: CopyOptions, environ: Mapping[str, str]) -> CopyRequest:
    """Build the request. Raises click.UsageError for options that contradict each other."""
    flow = SourceAndTarget(options["source_alias"], options["target_alias"])
    if flow.source == flow.target:
        raise click.UsageError(
            f"Both clusters have the alias {flow.source!r}: choose others with --source-alias and"
            " --target-alias."
        )
    excluded = (*_default_list(TOPIC_FILTER, "topics.exclude"), *(options["exclude"] or ()))
    return CopyRequest(
        flow=flow,
        source=_client_file(options["source_config"], options["source_servers"], environ, "--from"),
        target=_client_file(options["target_config"], options["target_servers"], environ, "--to"),
        policy=create_policy(
            options["policy"], ReplicationPolicyConfig(source_alias=flow.source), import_policy
        ),
        topic_filter=DefaultTopicFilter.of(options["topics"], excluded),
        config_filter=DefaultConfigPropertyFilter.of(
            _default_list(CONFIG_FILTER, "config.properties.exclude")
        ),
        patterns=options["topics"],
        tasks_max=options["tasks"] or _default_task_count(),
        connector=options["name"] or DEFAULT_CONNECTOR,
        start=options["start"],
        on_loss=DataLossPolicy(options["on_loss"]),
        read_committed=not options["read_uncommitted"],
        delivery=_delivery(options),
        commit_interval_s=_commit_interval_s(options),
        bytes_per_s=options["rate"] or 0,
        replication_factor=options["replication_factor"],
    )


def _delivery(options: CopyOptions) -> DeliveryMode:
    if not options["exactly_once"]:
        return DeliveryMode.SEQUENCED
    if options["read_uncommitted"]:
        raise click.UsageError(
            "--exactly-once and --read-uncommitted exclude each other: records of aborted source"
            " transactions would be committed on the target."
        )
    return DeliveryMode.EXACTLY_ONCE


def _commit_interval_s(options: CopyOptions) -> float:
    interval_ms = options["commit_interval"]
    if interval_ms is None:
        return DEFAULT_COMMIT_INTERVAL_S
    if not options["exactly_once"]:
        raise click.UsageError("--commit-interval is for --exactly-once.")
    return interval_ms / 1000


def _client_file(
    file: Path | None, servers: str | None, environ: Mapping[str, str], option: str
) -> ClientFile:
    client = ClientFile.read(file, servers, environ)
    if not client.raw.get(BOOTSTRAP):
        problem = f"{file} has no {BOOTSTRAP}" if file else "no broker is named"
        raise click.UsageError(f"{problem}: add {option} HOST:PORT.")
    return client


def _default_list(table: ConfigDef, key: str) -> tuple[str, ...]:
    default = table[key].default
    assert isinstance(default, tuple)
    return tuple(str(item) for item in default)


def _default_task_count() -> int:
    """One task for every two processors that this process may use.

    One task copies hundreds of megabytes per second on one processor. Fewer tasks with more
    partitions each send fewer requests to the brokers.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(cores // 2, 1)
