"""The clients that a worker opens for a file: mm2.properties, a worker's file, connectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sparkmirror.cli.check.needed_rights import (
    ClientNeeds,
    Needs,
    checkpoint_needs,
    heartbeat_needs,
    source_needs,
    worker_needs,
)
from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.review.key_usage import is_part_enabled
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.model import SourceAndTarget

WORKER_CLUSTER = "the worker's cluster"
_NEEDS: Mapping[str, Needs] = {
    SOURCE_CONNECTOR: source_needs,
    CHECKPOINT_CONNECTOR: checkpoint_needs,
    HEARTBEAT_CONNECTOR: heartbeat_needs,
}
_STORAGE_TOPICS = {
    "stores configs": "config.storage.topic",
    "stores offsets": "offset.storage.topic",
    "stores statuses": "status.storage.topic",
}


def dedicated_file_needs(
    config: MirrorMakerConfig, targets: Collection[str] = ()
) -> list[ClientNeeds]:
    """Return the needs of every flow that runs. Raises ConfigError."""
    return [need for flow in config.require_flows(targets) for need in _flow_needs(config, flow)]


def worker_file_needs(properties: Mapping[str, str]) -> list[ClientNeeds]:
    """Return the needs of a worker without connectors. `properties` are expanded."""
    return [_worker_needs(WORKER_CLUSTER, properties)]


def connector_needs(
    configs: Iterable[Mapping[str, str]], worker: Mapping[str, str] | None
) -> list[ClientNeeds]:
    """Return the needs of connectors, with expanded configs.

    Without a worker, its producer is left out: a connector's config does not say how it connects.
    """
    needs: list[ClientNeeds] = [] if worker is None else worker_file_needs(worker)
    properties = WorkerClientConfig(properties={"group.id": "connect-cluster", **(worker or {})})
    for config in configs:
        plugin = find_connector(config[CONNECTOR_CLASS].strip())
        assert plugin is not None, "the connector's config is valid"
        found = _NEEDS[plugin.class_name](config, properties)
        needs += [need for need in found if worker is not None or not need.uses_worker_client]
    return needs


def _flow_needs(config: MirrorMakerConfig, flow: SourceAndTarget) -> list[ClientNeeds]:
    properties = config.worker_config(flow)
    needs = [_worker_needs(flow.target, properties)]
    for part in FlowPart:
        if part.connector is None:
            continue
        layers = config.layered_connector_config(flow, part.connector)
        if is_part_enabled(config, layers, part):
            values = config.expand(layers.props).values
            needs += _NEEDS[part.connector.value](values, WorkerClientConfig(properties=properties))
    return needs


def _worker_needs(cluster: str, properties: Mapping[str, str]) -> ClientNeeds:
    topics = {purpose: properties[key] for purpose, key in _STORAGE_TOPICS.items()}
    return worker_needs(cluster, WorkerClientConfig(properties=properties), topics)
