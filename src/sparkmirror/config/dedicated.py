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

from sparkmirror.config.definition import ConfigDef
from sparkmirror.config.flowrules import (
    PROVIDER_KEYS,
    Connector,
    cluster_layers,
    connector_layers,
    worker_layers,
)
from sparkmirror.config.layers import Candidate, Layers, Origin, Rule
from sparkmirror.config.notices import Notice
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import Providers, declared
from sparkmirror.config.retired import RENAMED, modernise
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SPARK_PREFIX
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES, MIRROR_CLIENT
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.value import Value
from sparkmirror.config.variables import Expansion, Provider, conceal, expand
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

CLUSTERS = "clusters"
INTERNAL_REST = "dedicated.mode.enable.internal.rest"
ENABLED = "enabled"
EMIT_HEARTBEATS = "emit.heartbeats.enabled"
SWITCHES = frozenset({ENABLED, EMIT_HEARTBEATS})
"""What decides whether a flow runs."""
_OLDER_NAMES = {**RENAMED, "rest.port": "listeners", "rest.host.name": "listeners"}
NO_FLOWS = "No source->target replication flows."


class Dedicated:
    """One file, opened. ConfigError if it names no clusters."""

    def __init__(self, file: Properties, found: Providers) -> None:
        self.file = file
        self._providers = found
        self.clusters = self._read_clusters()
        modern = modernise(file.mapping, self._prefixes())
        self.notices: tuple[Notice, ...] = (*file.notices, *found.notices, *modern.notices)
        self.said = {key: self._candidate(key, value) for key, value in modern.props.items()}
        """Every key of the file in today's words, with its value as written and its line."""

    def __repr__(self) -> str:
        return f"Dedicated({self.file!r}, clusters={self.clusters})"

    @classmethod
    def open(cls, file: Properties, environment: Mapping[str, str]) -> Dedicated:
        """Open a file with the providers it declares. ConfigError if those do not exist."""
        return cls(file, declared(file.mapping, environment))

    def forgiving(self) -> Dedicated:
        """The same file, but what a provider cannot read leaves the placeholder as it is."""
        return Dedicated(self.file, self._providers.forgiving())

    # -- flows

    @property
    def pairs(self) -> tuple[SourceAndTarget, ...]:
        """Every ordered pair of different clusters: the flows there could be."""
        return tuple(SourceAndTarget(s, t) for s, t in permutations(self.clusters, 2))

    def flows(self, targets: Collection[str] = ()) -> tuple[SourceAndTarget, ...]:
        """The flows that run: enabled ones, and those that only carry heartbeats.

        With `targets`, only the flows into one of them: those that this node is to run.
        """
        keys = (f"{pair}.{name}" for pair in self.pairs for name in SWITCHES)
        switches = self.expand(self._written([EMIT_HEARTBEATS, *keys])).values
        return tuple(
            pair
            for pair in self.pairs
            if (not targets or pair.target in targets) and _runs(pair, switches)
        )

    def flows_to_run(self, targets: Collection[str] = ()) -> tuple[SourceAndTarget, ...]:
        """The same, but ConfigError if there is nothing to run."""
        flows = self.flows(targets)
        if not flows:
            raise ConfigError.of(
                CLUSTERS, f"{NO_FLOWS} {self._why_nothing(targets)}", where=self.file.file
            )
        return flows

    # -- compiled configs

    @property
    def internal_rest(self) -> bool:
        """Whether the nodes of this file may call each other over HTTP."""
        table = ConfigDef(DEDICATED[INTERNAL_REST])
        return self._parse(table, self._written([INTERNAL_REST]))[INTERNAL_REST] is True

    def own_config(self) -> dict[str, Value]:
        """What the process itself reads (its listeners, above all), expanded. Holds secrets.

        ConfigError lists every fault of the file's top level; Java refuses to start on the first.
        """
        return self._parse(DEDICATED, self._written(self.said))

    @property
    def spark(self) -> Mapping[str, str]:
        """What is for Spark as it is, as written. Nothing if a cluster is called spark."""
        if SPARK_PREFIX.removesuffix(".") in self.clusters:
            return {}
        return self._written(key for key in self.said if key.startswith(SPARK_PREFIX))

    def engine_config(self) -> dict[str, str]:
        """How the process shall run Spark, expanded. May hold secrets."""
        return self.expand(self._written(PROCESS_ADDITIONS.names) | dict(self.spark)).values

    def cluster(self, alias: str) -> Layers:
        """What the file says about a cluster, as written."""
        return cluster_layers(self.said, alias)

    def worker(self, flow: SourceAndTarget) -> Layers:
        """The config of a flow's worker, as written."""
        return worker_layers(self.said, flow)

    def connector(self, flow: SourceAndTarget, connector: Connector) -> Layers:
        """The config of one of a flow's connectors, as written: so it is stored and shown."""
        return connector_layers(self.said, flow, connector)

    def worker_config(self, flow: SourceAndTarget) -> dict[str, str]:
        """The config of a flow's worker, expanded. Holds secrets."""
        layers = self.worker(flow)
        written = {
            key: setting.value for key, setting in layers.items() if _is_expanded(setting.origin)
        }
        return layers.plain | self.expand(written).values

    def client_config(self, alias: str, kind: str) -> dict[str, Value]:
        """How an admin, consumer or producer of a cluster connects. Holds secrets."""
        said = self._written(self.said) | self.cluster(alias).plain
        own = {
            name: said[f"{kind}.{name}"]
            for name in CLIENT_SECURITY_NAMES
            if f"{kind}.{name}" in said
        }
        values = self._parse(MIRROR_CLIENT, said | own)
        return {name: values[name] for name in CLIENT_SECURITY_NAMES if values[name] is not None}

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers that the file declares, by name."""
        return self._providers.by_name

    def expand(self, written: Mapping[str, str]) -> Expansion:
        """Replace the placeholders of a config with what the file's providers say."""
        return expand(written, self._providers.by_name)

    # -- opening the file

    def _read_clusters(self) -> tuple[str, ...]:
        written = {k: v for k, v in self.file.mapping.items() if k == CLUSTERS}
        clusters = self._parse(ConfigDef(DEDICATED[CLUSTERS]), written)[CLUSTERS]
        assert isinstance(clusters, tuple)
        return clusters

    def _prefixes(self) -> Iterator[str]:
        yield ""
        for alias in self.clusters:
            yield f"{alias}."
        for pair in self.pairs:
            yield f"{pair}."

    def _candidate(self, key: str, value: str) -> Candidate:
        """A key that the file does not have stands for an old one: point at that."""
        written = key if key in self.file.lines else self._older_name(key)
        origin = Origin(rule=Rule.TOP_LEVEL, key=written, line=self.file.lines.get(written))
        return Candidate(value=value, origin=origin)

    def _older_name(self, key: str) -> str:
        for old, new in _OLDER_NAMES.items():
            written = key.removesuffix(new) + old
            if key.endswith(new) and written in self.file.lines:
                return written
        return key

    def _written(self, keys: Iterable[str]) -> dict[str, str]:
        return {key: self.said[key].value for key in keys if key in self.said}

    def _parse(self, table: ConfigDef, written: Mapping[str, str]) -> dict[str, Value]:
        expanded = self.expand(written).values
        try:
            return table.parse(expanded)
        except ConfigError as error:
            raise ConfigError([conceal(f, written, expanded) for f in error.faults]) from None

    def _why_nothing(self, targets: Collection[str]) -> str:
        unknown = sorted(set(targets) - set(self.clusters))
        if unknown:
            listed = self.said[CLUSTERS].value
            return f"No cluster is called {', '.join(unknown)}: {CLUSTERS}={listed}"
        if len(self.clusters) < 2:
            return "A flow needs two clusters: name them in clusters"
        return f"Enable one, for example {self.pairs[0]}.{ENABLED}=true"


def _runs(pair: SourceAndTarget, switches: Mapping[str, str]) -> bool:
    for_all = switches.get(EMIT_HEARTBEATS, "true")
    heartbeats = switches.get(f"{pair}.{EMIT_HEARTBEATS}", for_all)
    return _is_true(switches.get(f"{pair}.{ENABLED}", "")) or _is_true(heartbeats)


def _is_true(text: str) -> bool:
    """As Java's `Boolean.parseBoolean`: nothing is trimmed, and whatever is odd is false."""
    return text.lower() == "true"


def _is_expanded(origin: Origin) -> bool:
    """A worker expands its own provider settings itself; derived values have no placeholders."""
    return bool(origin.key) and not origin.key.startswith(PROVIDER_KEYS)
