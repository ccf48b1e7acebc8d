"""The keys of a dedicated file that have no effect, each with the reason and what to write.

MirrorMaker 2 ignores them without a warning. The reason follows from the uses of a key (see
`key_usage`) and from its form: below a flow, below a cluster, or at the top level.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkmirror.config.definition.enrichment import ALIAS_LIST_KEYS, enrich
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import split_list
from sparkmirror.config.files.deprecated_keys import IGNORED_KEYS
from sparkmirror.config.files.flow_config_precedence import (
    ALL_CONNECTOR_NAMES,
    CLIENT_TYPES,
    CONFIG_PROVIDERS_PREFIX,
    NAMES_FOR_ALL_FLOWS,
)
from sparkmirror.config.files.mirror_maker_config import CLUSTERS, FLOW_SWITCHES, MirrorMakerConfig
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.review.key_usage import KeyUse, KeyUses, compiled_config, key_uses
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.rest_server import WORKER_REST
from sparkmirror.model import SourceAndTarget

MAX_SUGGESTIONS = 100
"""A suggestion takes time; a file with more unknown keys is no config file."""

_CONNECTOR_KEYS = tuple(
    sorted(
        ALL_CONNECTOR_NAMES.union(*(part.config_def.names for part in FlowPart if part.connector))
    )
)
_CLUSTER_KEYS = tuple(sorted({*CLIENT_SECURITY_NAMES, *DISTRIBUTED.names}))
_TOP_LEVEL_KEYS = tuple(sorted({*NAMES_FOR_ALL_FLOWS, *DEDICATED.names, *PROCESS_ADDITIONS.names}))
_CLIENTS = tuple(f"{client_type}." for client_type in CLIENT_TYPES)
_PROCESS_PREFIXES = ("listeners.https.", "admin.listeners.https.")
_TRANSFORMATION_PREFIXES = tuple(f"{key}." for key in ALIAS_LIST_KEYS)
_FLOW_KEY = re.compile(r"(?P<source>.+?)->(?P<target>[^.]+)\.(?P<name>.+)")


def unused_key_notices(config: MirrorMakerConfig) -> tuple[Notice, ...]:
    """One notice for each key of the file without effect, in the order of the file."""
    return tuple(_UnusedKeyFinder(config, key_uses(config)).notices())


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why a key has no effect; for an unknown name, also the names to suggest."""

    text: str
    unknown_name: str = ""
    known_names: Sequence[str] = ()
    prefix: str = ""
    """The prefix of the name in the file."""


class _UnusedKeyFinder:
    """Finds the reason for each key of one file."""

    def __init__(self, config: MirrorMakerConfig, uses: KeyUses) -> None:
        self._file = config
        self._key_uses = uses
        self._flows = config.flows()
        self._process_keys = self._read_process_keys()
        declared = config.file_values.get(CONFIG_PROVIDERS_PREFIX)
        self._providers = frozenset(split_list(declared.value) if declared else ())
        self._suggestions_left = MAX_SUGGESTIONS

    def notices(self) -> Iterator[Notice]:
        """Yield the notices."""
        for key, candidate in self._file.file_values.items():
            if key in self._process_keys or key in IGNORED_KEYS:
                continue
            uses = self._key_uses.get(candidate.origin.key, [])
            if any(use.takes_effect for use in uses) and not self._is_undeclared_provider(key):
                yield from self._partial_effect_notices(key, uses)
            else:
                yield self._notice(
                    key, f"has no effect: {self._reason_text(self._reason(key, uses))}"
                )

    def _read_process_keys(self) -> frozenset[str]:
        """The keys that the process itself reads: its settings, and the switches of the flows."""
        switches = {
            f"{pair}.{name}" for pair in self._file.cluster_pairs for name in FLOW_SWITCHES
        } | FLOW_SWITCHES
        tables = {*DEDICATED.names, *PROCESS_ADDITIONS.names}
        names = switches.union(tables).difference(CLIENT_SECURITY_NAMES)
        below = {key for key in self._file.file_values if key.startswith(_PROCESS_PREFIXES)}
        return frozenset(names | below | self._file.spark_conf.keys())

    def _is_undeclared_provider(self, key: str) -> bool:
        """Whether the key configures a provider that `config.providers` does not name."""
        if not key.startswith(f"{CONFIG_PROVIDERS_PREFIX}."):
            return False
        name, _, _ = key.removeprefix(f"{CONFIG_PROVIDERS_PREFIX}.").partition(".")
        return name not in self._providers

    def _notice(self, key: str, message: str) -> Notice:
        return Notice(
            kind=NoticeKind.NO_EFFECT,
            message=message,
            file=self._file.properties.file,
            line=self._file.file_values[key].origin.line,
            key=key,
        )

    def _partial_effect_notices(self, key: str, uses: list[KeyUse]) -> Iterator[Notice]:
        """`A->B.producer.*` does not reach the producer of the data, as it might seem."""
        flow = uses[0].flow
        prefix = f"{flow}.producer."
        name = key.removeprefix(prefix)
        if key.startswith(prefix) and not name.startswith("override."):
            message = (
                "reaches only the producer of offset syncs, not that of the data: write "
                f"{prefix}override.{name} or {flow.target}.producer.{name}"
            )
            yield self._notice(key, message)

    def _reason_text(self, reason: _Reason) -> str:
        if not reason.unknown_name or not self._suggestions_left:
            return reason.text
        self._suggestions_left -= 1
        meant = closest_name(reason.unknown_name, reason.known_names)
        return f"{reason.text}; did you mean {reason.prefix}{meant}?" if meant else reason.text

    # -- reasons, by the form of the key

    def _reason(self, key: str, uses: list[KeyUse]) -> _Reason:
        if self._is_undeclared_provider(key):
            return _Reason(f"{CONFIG_PROVIDERS_PREFIX} does not name this provider")
        for pair in self._file.cluster_pairs:
            if key.startswith(f"{pair}."):
                return self._flow_key_reason(pair, key.removeprefix(f"{pair}."), uses)
        if form := _FLOW_KEY.fullmatch(key):
            return self._unknown_flow_reason(form)
        for alias in sorted(self._file.clusters, key=len, reverse=True):
            if key.startswith(f"{alias}."):
                return self._cluster_key_reason(alias, key.removeprefix(f"{alias}."), uses)
        return self._top_level_reason(key, uses)

    def _flow_key_reason(self, pair: SourceAndTarget, name: str, uses: list[KeyUse]) -> _Reason:
        if pair not in self._flows:
            return _Reason(f"the flow {pair} does not run; set {pair}.enabled=true to run it")
        if any(use.is_read for use in uses):
            return _Reason(f"the flow {pair} is not enabled; set {pair}.enabled=true")
        if name in CLIENT_SECURITY_NAMES:
            return _Reason(
                f"clients do not read it from a flow; write {pair.source}.{name} or "
                f"{pair.target}.{name}"
            )
        if name in DISTRIBUTED and name not in WORKER_REST:
            return _Reason(f"workers do not read settings of a flow; write {pair.target}.{name}")
        for side in ("source", "target"):
            if name.startswith(f"{side}.cluster."):
                setting = name.removeprefix(f"{side}.cluster.")
                return _Reason(
                    f"below {side}.cluster. only connection and security settings are read; "
                    f"write {pair}.{side}.consumer.{setting}, or .producer. or .admin."
                )
        if name.startswith(_TRANSFORMATION_PREFIXES):
            return self._undeclared_reason(pair, name)
        return _Reason(f"no connector reads {name}", name, _CONNECTOR_KEYS, f"{pair}.")

    def _undeclared_reason(self, pair: SourceAndTarget, name: str) -> _Reason:
        """The reason for a key of a transformation or a predicate that its list does not add."""
        alias_list, _, own = name.partition(".")
        props = compiled_config(self._file, pair, FlowPart.SOURCE).props
        known = tuple(
            key
            for key in enrich(props, resolve_class).names
            if key.startswith(_TRANSFORMATION_PREFIXES)
        )
        aliases = split_list(props.get(alias_list, ""))
        if any(own.startswith(f"{alias}.") for alias in aliases):
            text = f"the class of the alias has no key {own.partition('.')[2]}"
        else:
            text = f"{pair}.{alias_list} does not name the alias {own.partition('.')[0]}"
        return _Reason(text, name, known, f"{pair}.")

    def _unknown_flow_reason(self, form: re.Match[str]) -> _Reason:
        source, target = form["source"], form["target"]
        if source == target:
            return _Reason("a flow needs two different clusters")
        unknown = [alias for alias in (source, target) if alias not in self._file.clusters]
        return self._unknown_cluster_reason(unknown[0])

    def _unknown_cluster_reason(self, alias: str) -> _Reason:
        listed = ", ".join(split_list(self._file.file_values[CLUSTERS].value))
        return _Reason(f"{CLUSTERS} lists {listed}, not {alias}", alias, self._file.clusters)

    def _cluster_key_reason(self, alias: str, name: str, uses: list[KeyUse]) -> _Reason:
        if not any(alias in (flow.source, flow.target) for flow in self._flows):
            return _Reason(f"no flow from or to {alias} runs")
        if overridden := _overridden_reason(uses):
            return overridden
        if any(use.is_read for use in uses):
            return _Reason(f"no flow from or to {alias} is enabled")
        if name in WORKER_REST:
            return _Reason(f"the process has one REST server; write {name} without {alias}.")
        if FlowPart.WORKER.reads(name):
            return _Reason(
                f"settings of {alias}'s workers apply to flows into {alias}, and none runs"
            )
        if name in _CONNECTOR_KEYS or name.startswith(_TRANSFORMATION_PREFIXES):
            for_all = f", or {name} for all flows" if name in NAMES_FOR_ALL_FLOWS else ""
            flow = self._example_flow(alias)
            return _Reason(
                f"connectors do not read it from a cluster; write {flow}.{name}{for_all}"
            )
        return _Reason(
            f"{name} is neither a connection, security nor worker setting; for clients write "
            f"{alias}.consumer.{name}, or .producer. or .admin.",
            name,
            _CLUSTER_KEYS,
            f"{alias}.",
        )

    def _top_level_reason(self, key: str, uses: list[KeyUse]) -> _Reason:
        if overridden := _overridden_reason(uses):
            return overridden
        if any(use.is_read for use in uses):
            return _Reason(f"no flow is enabled; set {self._example_flow()}.enabled=true")
        if key in DISTRIBUTED:
            alias = self._example_flow().target
            return _Reason(f"workers read it only below their cluster; write {alias}.{key}")
        if key.startswith(_CLIENTS):
            flow = self._example_flow()
            return _Reason(
                f"clients read it only below a cluster; write {flow.source}.{key} or "
                f"{flow.target}.{key}"
            )
        if any(part.reads(key) for part in FlowPart if part.connector):
            return _Reason(
                f"connectors read it only below a flow; write {self._example_flow()}.{key}"
            )
        return self._unknown_top_level_reason(key)

    def _unknown_top_level_reason(self, key: str) -> _Reason:
        alias, _, name = key.partition(".")
        if name in _CLUSTER_KEYS or name.startswith(_CLIENTS):
            return self._unknown_cluster_reason(alias)
        return _Reason("nothing reads it", key, _TOP_LEVEL_KEYS)

    def _example_flow(self, target: str = "") -> SourceAndTarget:
        flows = [*self._flows, *self._file.cluster_pairs]
        into = [flow for flow in flows if target in (flow.target, flow.source)]
        return (into or flows or [SourceAndTarget("A", "B")])[0]


def _overridden_reason(uses: list[KeyUse]) -> _Reason | None:
    """The reason if another key overrides this one."""
    for use in uses:
        if use.is_read and use.is_active and use.overridden_by is not None:
            winner = use.overridden_by
            return _Reason(f"{winner.key} on line {winner.line} wins")
    return None
