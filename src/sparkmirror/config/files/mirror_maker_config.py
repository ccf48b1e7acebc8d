"""A dedicated file (mm2.properties): its clusters, its flows, and the configs they compile to.

Opening a file replaces deprecated keys, and expands and reads `clusters` and the switches of the
flows; everything else keeps its placeholders. `flow_config_precedence` has the rules, `review`
finds faults.

Nothing here keeps an expanded value: `worker_config` and `client_config` fetch secrets at each
call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import permutations

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.files.deprecated_keys import RENAMED_KEYS, migrate_deprecated_keys
from sparkmirror.config.files.flow_config_precedence import (
    CONFIG_PROVIDERS_PREFIX,
    MirrorConnector,
    compile_cluster_config,
    compile_connector_config,
    compile_worker_config,
)
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.files.provenance import (
    CandidateValue,
    ConfigOrigin,
    LayeredConfig,
    PrecedenceRule,
)
from sparkmirror.config.notices import Notice
from sparkmirror.config.secrets.providers import ConfigProviders, create_providers
from sparkmirror.config.secrets.variables import (
    ConfigProvider,
    ExpandedConfig,
    expand_variables,
    redact_fault,
)
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SPARK_PREFIX
from sparkmirror.config.tables.client.common_client_configs import (
    CLIENT_SECURITY_NAMES,
    MIRROR_CLIENT,
)
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

CLUSTERS = "clusters"
INTERNAL_REST = "dedicated.mode.enable.internal.rest"
ENABLED = "enabled"
EMIT_HEARTBEATS = "emit.heartbeats.enabled"
FLOW_SWITCHES = frozenset({ENABLED, EMIT_HEARTBEATS})
"""The keys that decide whether a flow runs."""
_DEPRECATED_NAMES = {**RENAMED_KEYS, "rest.port": "listeners", "rest.host.name": "listeners"}
NO_FLOWS_MESSAGE = "No source->target replication flows."


class MirrorMakerConfig:
    """One opened file. Raises ConfigError if it names no clusters."""

    def __init__(self, file: Properties, providers: ConfigProviders) -> None:
        self.properties = file
        self._providers = providers
        self.clusters = self._read_clusters()
        migrated = migrate_deprecated_keys(file.mapping, self._prefixes())
        self.notices: tuple[Notice, ...] = (
            *file.notices,
            *providers.notices,
            *migrated.notices,
        )
        self.file_values = {
            key: self._candidate(key, value) for key, value in migrated.props.items()
        }
        """Every key of the file, deprecated ones replaced, with its line and its raw value."""

    def __repr__(self) -> str:
        return f"MirrorMakerConfig({self.properties!r}, clusters={self.clusters})"

    @classmethod
    def open(cls, file: Properties, environment: Mapping[str, str]) -> MirrorMakerConfig:
        """Open a file with the providers that it declares. Raises ConfigError if one is invalid."""
        return cls(file, create_providers(file.mapping, environment))

    def lenient(self) -> MirrorMakerConfig:
        """The same file, but a placeholder that a provider cannot read stays as text."""
        return MirrorMakerConfig(self.properties, self._providers.lenient())

    # -- flows

    @property
    def cluster_pairs(self) -> tuple[SourceAndTarget, ...]:
        """Every ordered pair of different clusters: the possible flows."""
        return tuple(SourceAndTarget(s, t) for s, t in permutations(self.clusters, 2))

    def flows(self, targets: Collection[str] = ()) -> tuple[SourceAndTarget, ...]:
        """The flows that run: enabled flows, and flows with heartbeats only.

        With `targets`, only the flows into one of them.
        """
        keys = (f"{pair}.{name}" for pair in self.cluster_pairs for name in FLOW_SWITCHES)
        switches = self.expand(self._raw_values([EMIT_HEARTBEATS, *keys])).values
        return tuple(
            pair
            for pair in self.cluster_pairs
            if (not targets or pair.target in targets) and _is_running(pair, switches)
        )

    def require_flows(self, targets: Collection[str] = ()) -> tuple[SourceAndTarget, ...]:
        """The same. Raises ConfigError if no flow runs."""
        flows = self.flows(targets)
        if not flows:
            raise ConfigError.of(
                CLUSTERS, self.no_flows_message(targets), where=self.properties.file
            )
        return flows

    def no_flows_message(self, targets: Collection[str] = ()) -> str:
        """The fault of a file without a flow that runs, with its reason."""
        return f"{NO_FLOWS_MESSAGE} {self._no_flows_reason(targets)}"

    # -- compiled configs

    @property
    def internal_rest_enabled(self) -> bool:
        """Whether the file asks for MirrorMaker 2's internal REST API."""
        config_def = ConfigDef(DEDICATED[INTERNAL_REST])
        return self._parse(config_def, self._raw_values([INTERNAL_REST]))[INTERNAL_REST] is True

    def process_config(self) -> dict[str, ParsedValue]:
        """The keys of the process itself (above all its listeners), expanded. Holds secrets.

        Raises ConfigError with every fault of the top level.
        """
        return self._parse(DEDICATED, self._raw_values(self.file_values))

    @property
    def spark_conf(self) -> Mapping[str, str]:
        """The keys for Spark, as written. None if a cluster has the alias spark."""
        if SPARK_PREFIX.removesuffix(".") in self.clusters:
            return {}
        return self._raw_values(key for key in self.file_values if key.startswith(SPARK_PREFIX))

    def engine_config(self) -> dict[str, str]:
        """The keys that configure Spark for the process, expanded. May hold secrets."""
        return self.expand(self._raw_values(PROCESS_ADDITIONS.names) | dict(self.spark_conf)).values

    def layered_cluster_config(self, alias: str) -> LayeredConfig:
        """The config of a cluster, as written."""
        return compile_cluster_config(self.file_values, alias)

    def layered_worker_config(self, flow: SourceAndTarget) -> LayeredConfig:
        """The config of a flow's worker, as written."""
        return compile_worker_config(self.file_values, flow)

    def layered_connector_config(
        self, flow: SourceAndTarget, connector: MirrorConnector
    ) -> LayeredConfig:
        """The config of one connector of a flow, as written. It is stored and shown like this."""
        return compile_connector_config(self.file_values, flow, connector)

    def worker_config(self, flow: SourceAndTarget) -> dict[str, str]:
        """The config of a flow's worker, expanded. Holds secrets."""
        layers = self.layered_worker_config(flow)
        written = {
            key: setting.value for key, setting in layers.items() if _is_expanded(setting.origin)
        }
        return layers.props | self.expand(written).values

    def client_config(self, alias: str, client_type: str) -> dict[str, ParsedValue]:
        """The connection and security settings of a client of a cluster. Holds secrets."""
        written = self._raw_values(self.file_values) | self.layered_cluster_config(alias).props
        own = {
            name: written[f"{client_type}.{name}"]
            for name in CLIENT_SECURITY_NAMES
            if f"{client_type}.{name}" in written
        }
        values = self._parse(MIRROR_CLIENT, written | own)
        return {name: values[name] for name in CLIENT_SECURITY_NAMES if values[name] is not None}

    @property
    def providers(self) -> Mapping[str, ConfigProvider]:
        """The providers that the file declares, by name."""
        return self._providers.by_name

    def expand(self, written: Mapping[str, str]) -> ExpandedConfig:
        """Replace the placeholders of a config with the values of the file's providers."""
        return expand_variables(written, self._providers.by_name)

    # -- opening the file

    def _read_clusters(self) -> tuple[str, ...]:
        written = {k: v for k, v in self.properties.mapping.items() if k == CLUSTERS}
        clusters = self._parse(ConfigDef(DEDICATED[CLUSTERS]), written)[CLUSTERS]
        assert isinstance(clusters, tuple)
        return clusters

    def _prefixes(self) -> Iterator[str]:
        yield ""
        for alias in self.clusters:
            yield f"{alias}."
        for pair in self.cluster_pairs:
            yield f"{pair}."

    def _candidate(self, key: str, value: str) -> CandidateValue:
        """A key that is not in the file replaces a deprecated one: the origin is that key."""
        written = key if key in self.properties.lines else self._deprecated_name(key)
        origin = ConfigOrigin(
            rule=PrecedenceRule.TOP_LEVEL, key=written, line=self.properties.lines.get(written)
        )
        return CandidateValue(value=value, origin=origin)

    def _deprecated_name(self, key: str) -> str:
        for old, new in _DEPRECATED_NAMES.items():
            written = key.removesuffix(new) + old
            if key.endswith(new) and written in self.properties.lines:
                return written
        return key

    def _raw_values(self, keys: Iterable[str]) -> dict[str, str]:
        return {key: self.file_values[key].value for key in keys if key in self.file_values}

    def _parse(self, config_def: ConfigDef, written: Mapping[str, str]) -> dict[str, ParsedValue]:
        expanded = self.expand(written).values
        try:
            return config_def.parse(expanded)
        except ConfigError as error:
            raise ConfigError([redact_fault(f, written, expanded) for f in error.faults]) from None

    def _no_flows_reason(self, targets: Collection[str]) -> str:
        unknown = sorted(set(targets) - set(self.clusters))
        if unknown:
            listed = self.file_values[CLUSTERS].value
            return f"No cluster is called {', '.join(unknown)}: {CLUSTERS}={listed}"
        if len(self.clusters) < 2:
            return "A flow needs two clusters: name them in clusters"
        return f"Enable one, for example {self.cluster_pairs[0]}.{ENABLED}=true"


def _is_running(pair: SourceAndTarget, switches: Mapping[str, str]) -> bool:
    for_all = switches.get(EMIT_HEARTBEATS, "true")
    heartbeats = switches.get(f"{pair}.{EMIT_HEARTBEATS}", for_all)
    return _is_true(switches.get(f"{pair}.{ENABLED}", "")) or _is_true(heartbeats)


def _is_true(text: str) -> bool:
    """As Java's `Boolean.parseBoolean`: nothing is trimmed, and any other text is false."""
    return text.lower() == "true"


def _is_expanded(origin: ConfigOrigin) -> bool:
    """Settings of providers are not expanded, as in Java; derived values have no placeholders."""
    return bool(origin.key) and not origin.key.startswith(CONFIG_PROVIDERS_PREFIX)
