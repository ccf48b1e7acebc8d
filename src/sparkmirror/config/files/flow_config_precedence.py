"""The rules that compile a dedicated file to configs: of a cluster, a worker, a connector.

    A.key ────────────┐
    key (for clients) ┴► cluster A ──┐
                                     ├─► worker of S->T: cluster T, storage and converter keys
    key, S->T.key ───────────────────┴─► connectors of S->T: both clusters, S->T wins

The rules are MirrorMaker 2's, odd ones included: a worker does not get `S->T.` keys, and top-level
keys of storage and converters win over those of the cluster. Values keep their placeholders
(`${...}`); the code that uses the result expands them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.files.provenance import (
    CandidateValue,
    ConfigOrigin,
    LayeredConfig,
    PrecedenceRule,
)
from sparkmirror.config.tables.additions import SOURCE_ADDITIONS
from sparkmirror.config.tables.checkpoint import CHECKPOINT
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.config.tables.source import SOURCE
from sparkmirror.model import SourceAndTarget

CLIENT_TYPES = ("producer", "consumer", "admin")

CONFIG_PROVIDERS_PREFIX = "config.providers"
REPLICATION_POLICY_PREFIX = "replication.policy"
WORKER_PREFIXES = (
    "offset.storage", "config.storage", "status.storage", "key.converter", "value.converter",
    "header.converter", "task", "worker", REPLICATION_POLICY_PREFIX,
)  # fmt: skip
"""A top-level key that begins like this reaches every worker."""

ALL_CONNECTOR_NAMES = frozenset({*SOURCE.names, *CHECKPOINT.names, *HEARTBEAT.names})
"""The names that any of the three connectors declares, as Kafka's tables have them."""
NAMES_FOR_ALL_FLOWS = ALL_CONNECTOR_NAMES.union(SOURCE_ADDITIONS.names)
"""The connector keys that the top level of a dedicated file sets for all flows."""

BYTE_ARRAY_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"


class MirrorConnector(Enum):
    """The three connectors of a flow, by their Java class."""

    SOURCE = SOURCE_CONNECTOR
    HEARTBEAT = HEARTBEAT_CONNECTOR
    CHECKPOINT = CHECKPOINT_CONNECTOR

    @property
    def simple_name(self) -> str:
        """The class name without its package: the default name of the connector."""
        return self.value.rpartition(".")[2]


FileValues = Mapping[str, CandidateValue]
"""Every key of the file with its value and line. The rule is TOP_LEVEL; a prefix changes it."""


def compile_cluster_config(file_values: FileValues, alias: str) -> LayeredConfig:
    """The config of one cluster, for each client type."""
    layers = _with_prefix_removed(file_values, f"{alias}.", PrecedenceRule.CLUSTER)
    for name in CLIENT_SECURITY_NAMES:
        if name in layers:
            own = layers[name].candidates
            for client_type in CLIENT_TYPES:
                layers.add_fallback(f"{client_type}.{name}", *own)
    for name in CLIENT_SECURITY_NAMES:
        if name in file_values:
            shared = _with_rule(file_values[name], PrecedenceRule.EVERY_CLUSTER)
            for key in (*(f"{client_type}.{name}" for client_type in CLIENT_TYPES), name):
                layers.add_fallback(key, shared)
    return layers


def compile_worker_config(file_values: FileValues, flow: SourceAndTarget) -> LayeredConfig:
    """The config of a flow's worker, which belongs to the target cluster."""
    layers = compile_cluster_config(file_values, flow.target)
    for key, candidate in file_values.items():
        if key.startswith((*WORKER_PREFIXES, CONFIG_PROVIDERS_PREFIX)):
            layers.add_override(key, candidate)
    derived = {
        "client.id": str(flow),
        "group.id": f"{flow.source}-mm2",
        "offset.storage.topic": f"mm2-offsets.{flow.source}.internal",
        "status.storage.topic": f"mm2-status.{flow.source}.internal",
        "config.storage.topic": f"mm2-configs.{flow.source}.internal",
        "key.converter": BYTE_ARRAY_CONVERTER,
        "value.converter": BYTE_ARRAY_CONVERTER,
        "header.converter": BYTE_ARRAY_CONVERTER,
    }
    for key, value in derived.items():
        layers.add_fallback(key, _derived(value))
    return layers


def compile_connector_config(
    file_values: FileValues, flow: SourceAndTarget, connector: MirrorConnector
) -> LayeredConfig:
    """The config of one connector of a flow."""
    layers = LayeredConfig()
    for key, candidate in file_values.items():
        if key in NAMES_FOR_ALL_FLOWS or key.startswith(
            (CONFIG_PROVIDERS_PREFIX, REPLICATION_POLICY_PREFIX)
        ):
            layers.add_override(key, candidate)
    _add_cluster(layers, compile_cluster_config(file_values, flow.source), "source.")
    _add_cluster(layers, compile_cluster_config(file_values, flow.target), "target.")
    derived = {
        "name": connector.simple_name,
        "connector.class": connector.value,
        "source.cluster.alias": flow.source,
        "target.cluster.alias": flow.target,
    }
    for key, value in derived.items():
        layers.add_fallback(key, _derived(value))
    for key, setting in _with_prefix_removed(file_values, f"{flow}.", PrecedenceRule.FLOW).items():
        layers.add_override(key, *setting.candidates)
    layers.add_fallback("enabled", _derived("false"))
    return layers


def _with_prefix_removed(
    file_values: FileValues, prefix: str, rule: PrecedenceRule
) -> LayeredConfig:
    layers = LayeredConfig()
    for key, candidate in file_values.items():
        if key.startswith(prefix) and key != prefix:
            layers.add_override(key.removeprefix(prefix), _with_rule(candidate, rule))
    return layers


def _add_cluster(layers: LayeredConfig, cluster: LayeredConfig, side: str) -> None:
    """Add client keys as `source.producer.x`, all others as `source.cluster.x`."""
    for key, setting in cluster.items():
        prefix = side if key.startswith(CLIENT_TYPES) else f"{side}cluster."
        layers.add_override(prefix + key, *setting.candidates)


def _with_rule(candidate: CandidateValue, rule: PrecedenceRule) -> CandidateValue:
    origin = ConfigOrigin(rule=rule, key=candidate.origin.key, line=candidate.origin.line)
    return CandidateValue(value=candidate.value, origin=origin)


def _derived(value: str) -> CandidateValue:
    return CandidateValue(value=value, origin=ConfigOrigin(rule=PrecedenceRule.DERIVED))
