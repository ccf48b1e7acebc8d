"""The rules that turn a dedicated file into configs: for a cluster, a worker, a connector.

    A.key ────────────┐
    key (for clients) ┴► cluster A ──┐
                                     ├─► worker of S->T: cluster T, storage and converter keys
    key, S->T.key ───────────────────┴─► connectors of S->T: both clusters, S->T wins

Rules are MirrorMaker 2's, odd ones included: a worker hears nothing of `S->T.` keys, and what the
top level says about storage and converters beats what the cluster says. Values stay as they are
written; expanding `${...}` is for whoever runs the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sparkmirror.config.classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.layers import Candidate, Layers, Origin, Rule
from sparkmirror.config.tables.additions import SOURCE_ADDITIONS
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.connectors import ALL_CONNECTOR_NAMES
from sparkmirror.model import SourceAndTarget

CLIENT_KINDS = ("producer", "consumer", "admin")

PROVIDER_KEYS = "config.providers"
POLICY_KEYS = "replication.policy"
WORKER_KEYS = (
    "offset.storage", "config.storage", "status.storage", "key.converter", "value.converter",
    "header.converter", "task", "worker", POLICY_KEYS,
)  # fmt: skip
"""What begins like this at the top level reaches every worker."""

_FOR_ALL_FLOWS = ALL_CONNECTOR_NAMES.union(SOURCE_ADDITIONS.names)

BYTE_ARRAY_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Connector(Enum):
    """The three connectors of a flow, by the Java class they stand for."""

    SOURCE = SOURCE_CONNECTOR
    HEARTBEAT = HEARTBEAT_CONNECTOR
    CHECKPOINT = CHECKPOINT_CONNECTOR

    @property
    def simple_name(self) -> str:
        """The class name without its package; a connector's name unless the file gives one."""
        return self.value.rpartition(".")[2]


Said = Mapping[str, Candidate]
"""Every key of the file with its value and line; the rule is TOP_LEVEL until a prefix says more."""


def cluster_layers(said: Said, alias: str) -> Layers:
    """What the file says about one cluster, for each kind of client."""
    layers = _with_prefix_removed(said, f"{alias}.", Rule.CLUSTER)
    for name in CLIENT_SECURITY_NAMES:
        if name in layers:
            own = layers[name].candidates
            for kind in CLIENT_KINDS:
                layers.fill(f"{kind}.{name}", *own)
    for name in CLIENT_SECURITY_NAMES:
        if name in said:
            shared = _by(said[name], Rule.EVERY_CLUSTER)
            for key in (*(f"{kind}.{name}" for kind in CLIENT_KINDS), name):
                layers.fill(key, shared)
    return layers


def worker_layers(said: Said, flow: SourceAndTarget) -> Layers:
    """The worker of a flow: it lives on the target cluster and serves one source."""
    layers = cluster_layers(said, flow.target)
    for key, candidate in said.items():
        if key.startswith((*WORKER_KEYS, PROVIDER_KEYS)):
            layers.put(key, candidate)
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
        layers.fill(key, _derived(value))
    return layers


def connector_layers(said: Said, flow: SourceAndTarget, connector: Connector) -> Layers:
    """One connector of a flow."""
    layers = Layers()
    for key, candidate in said.items():
        if key in _FOR_ALL_FLOWS or key.startswith((PROVIDER_KEYS, POLICY_KEYS)):
            layers.put(key, candidate)
    _put_cluster(layers, cluster_layers(said, flow.source), "source.")
    _put_cluster(layers, cluster_layers(said, flow.target), "target.")
    derived = {
        "name": connector.simple_name,
        "connector.class": connector.value,
        "source.cluster.alias": flow.source,
        "target.cluster.alias": flow.target,
    }
    for key, value in derived.items():
        layers.fill(key, _derived(value))
    for key, setting in _with_prefix_removed(said, f"{flow}.", Rule.FLOW).items():
        layers.put(key, *setting.candidates)
    layers.fill("enabled", _derived("false"))
    return layers


def _with_prefix_removed(said: Said, prefix: str, rule: Rule) -> Layers:
    layers = Layers()
    for key, candidate in said.items():
        if key.startswith(prefix) and key != prefix:
            layers.put(key.removeprefix(prefix), _by(candidate, rule))
    return layers


def _put_cluster(layers: Layers, cluster: Layers, side: str) -> None:
    """Keys for clients go to `source.producer.x`, all others to `source.cluster.x`."""
    for key, setting in cluster.items():
        prefix = side if key.startswith(CLIENT_KINDS) else f"{side}cluster."
        layers.put(prefix + key, *setting.candidates)


def _by(candidate: Candidate, rule: Rule) -> Candidate:
    origin = Origin(rule=rule, key=candidate.origin.key, line=candidate.origin.line)
    return Candidate(value=candidate.value, origin=origin)


def _derived(value: str) -> Candidate:
    return Candidate(value=value, origin=Origin(rule=Rule.DERIVED))
