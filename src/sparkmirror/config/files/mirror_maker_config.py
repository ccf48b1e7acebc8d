"""A dedicated file (mm2.properties): its clusters, its flows, and the configs they compile to.

Knows how the file is opened: old keys are read as they were meant, `clusters` and the switches
that decide which flows exist are expanded and read, everything else stays as written. Which rule
gives which value is in `flowrules`; what is wrong with the result is in `review`.

Nothing here keeps an expanded value: `worker_config` and `client_config` fetch secrets anew each
time they are asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import permutations

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.files.deprecated_keys import RENAMED_KEYS, migrate_deprecated_keys
from sparkmirror.config.files.flow_rules import (
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
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES, MIRROR_CLIENT
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

CLUSTERS = "clusters"
INTERNAL_REST = "dedicated.mode.enable.internal.rest"
ENABLED = "enabled"
EMIT_HEARTBEATS = "emit.heartbeats.enabled"
FLOW_SWITCHES = frozenset({ENABLED, EMIT_HEARTBEATS})
"""What decides whether a flow runs."""
_DEPRECATED_NAMES = {**RENAMED_KEYS, "rest.port": "listeners", "rest.host.name": "listeners"}
NO_FLOWS_MESSAGE = "No source->target replication flows."


class MirrorMakerConfig:
    """One file, opened. ConfigError if it names no clusters."""

    def __init__(self, file: Properties, found: ConfigProviders) -> None:
        self.properties = file
        self._providers = found
        self.clusters = self._read_clusters()
        modern = migrate_deprecated_keys(file.mapping, self._prefixes())
        self.notices: tuple[Notice, ...] = (*file.notices, *found.notices, *modern.notices)
        self.file_values = {key: self._candidate(key, value) for key, value in modern.props.items()}
        """Every key of the file in today's words, with its value as written and its line."""

    def __repr__(self) -> str:
        return f"MirrorMakerConfig({self.properties!r}, clusters={self.clusters})"

    @classmethod
    def open(cls, file: Properties, environment: Mapping[str, str]) -> MirrorMakerConfig:
        """Open a file with the providers it declares. ConfigError if those do not exist."""
        return cls(file, create_providers(file.mapping, environment))

    def lenient(self) -> MirrorMakerConfig:
        """The same file, but what a provider cannot read leaves the placeholder as it is."""
        return MirrorMakerConfig(self.properties, self._providers.lenient())

    # -- flows

    @property
    def cluster_pairs(self) -> tuple[SourceAndTarget, ...]:
        """Every ordered pair of different clusters: the flows there could be."""
        return tuple(SourceAndTarget(s, t) for s, t in permutations(self.clusters, 2))

    def flows(self, targets: Collection[str] = ()) -> tuple[SourceAndTarget, ...]:
        """The flows that run: enabled ones, and those that only carry heartbeats.

        With `targets`, only the flows into one of them: those that this node is to run.
        """
        keys = (f"{pair}.{name}" for pair in self.cluster_pairs for name in FLOW_SWITCHES)
        switches = self.expand(self._raw_values([EMIT_HEARTBEATS, *keys])).values
        return tuple(
            pair
            for pair in self.cluster_pairs
            if (not targets or pair.target in targets) and _is_running(pair, switches)
        )

    def require_flows(self, targets: Collection[str] = ()) -> tuple[SourceAndTarget, ...]:
        """The same, but ConfigError if there is nothing to run."""
        flows = self.flows(targets)
        if not flows:
            raise ConfigError.of(
                CLUSTERS,
                f"{NO_FLOWS_MESSAGE} {self._no_flows_reason(targets)}",
                where=self.properties.file,
            )
        return flows

    # -- compiled configs

    @property
    def internal_rest_enabled(self) -> bool:
        """Whether the nodes of this file may call each other over HTTP."""
        table = ConfigDef(DEDICATED[INTERNAL_REST])
        return self._parse(table, self._raw_values([INTERNAL_REST]))[INTERNAL_REST] is True

    def process_config(self) -> dict[str, ParsedValue]:
        """What the process itself reads (its listeners, above all), expanded. Holds secrets.

        ConfigError lists every fault of the file's top level; Java refuses to start on the first.
        """
        return self._parse(DEDICATED, self._raw_values(self.file_values))

    @property
    def spark_conf(self) -> Mapping[str, str]:
        """What is for Spark as it is, as written. Nothing if a cluster is called spark."""
        if SPARK_PREFIX.removesuffix(".") in self.clusters:
            return {}
        return self._raw_values(key for key in self.file_values if key.startswith(SPARK_PREFIX))

    def engine_config(self) -> dict[str, str]:
        """How the process shall run Spark, expanded. May hold secrets."""
        return self.expand(self._raw_values(PROCESS_ADDITIONS.names) | dict(self.spark_conf)).values

    def layered_cluster_config(self, alias: str) -> LayeredConfig:
        """What the file says about a cluster, as written."""
        return compile_cluster_config(self.file_values, alias)

    def layered_worker_config(self, flow: SourceAndTarget) -> LayeredConfig:
        """The config of a flow's worker, as written."""
        return compile_worker_config(self.file_values, flow)

    def layered_connector_config(
        self, flow: SourceAndTarget, connector: MirrorConnector
    ) -> LayeredConfig:
        """The config of one of a flow's connectors, as written: so it is stored and shown."""
        return compile_connector_config(self.file_values, flow, connector)

    def worker_config(self, flow: SourceAndTarget) -> dict[str, str]:
        """The config of a flow's worker, expanded. Holds secrets."""
        layers = self.layered_worker_config(flow)
        written = {
            key: setting.value for key, setting in layers.items() if _is_expanded(setting.origin)
        }
        return layers.props | self.expand(written).values

    def client_config(self, alias: str, kind: str) -> dict[str, ParsedValue]:
        """How an admin, consumer or producer of a cluster connects. Holds secrets."""
        said = self._raw_values(self.file_values) | self.layered_cluster_config(alias).props
        own = {
            name: said[f"{kind}.{name}"]
            for name in CLIENT_SECURITY_NAMES
            if f"{kind}.{name}" in said
        }
        values = self._parse(MIRROR_CLIENT, said | own)
        return {name: values[name] for name in CLIENT_SECURITY_NAMES if values[name] is not None}

    @property
    def providers(self) -> Mapping[str, ConfigProvider]:
        """The providers that the file declares, by name."""
        return self._providers.by_name

    def expand(self, written: Mapping[str, str]) -> ExpandedConfig:
        """Replace the placeholders of a config with what the file's providers say."""
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
        """A key that the file does not have stands for an old one: point at that."""
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

    def _parse(self, table: ConfigDef, written: Mapping[str, str]) -> dict[str, ParsedValue]:
        expanded = self.expand(written).values
        try:
            return table.parse(expanded)
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
    """As Java's `Boolean.parseBoolean`: nothing is trimmed, and whatever is odd is false."""
    return text.lower() == "true"


def _is_expanded(origin: ConfigOrigin) -> bool:
    """A worker expands its own provider settings itself; derived values have no placeholders."""
    return bool(origin.key) and not origin.key.startswith(CONFIG_PROVIDERS_PREFIX)
