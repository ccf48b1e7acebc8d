"""The Kafka clients of a connector: which there are, and which keys configure each.

Source, checkpoint and heartbeat connectors use admins, consumers and producers on both clusters:

    source.cluster.*  (connection and security names only)
      └► consumer.*  └► source.consumer.*  └► fixed values     later ones win

Mirrored records, checkpoints and heartbeats go through the worker's producer instead:

    the worker's bootstrap.servers
      └► producer.* of the worker  └► producer.override.* of the connector     later ones win

The match of a prefix is naive, as in Kafka: `consumer.poll.timeout.ms` also gives the consumer a
setting `poll.timeout.ms`, which it does not know.

No client gets config providers of its own. The authors of connector configs could read any file of
the worker with them (CVE-2024-31141 in Kafka's clients): the worker's providers and their limits
alone count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definition.override_policy import PRODUCER_OVERRIDE_PREFIX
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.errors import ConfigFault

NAME = "name"
SOURCE_CLUSTER_ALIAS = "source.cluster.alias"
TARGET_CLUSTER_ALIAS = "target.cluster.alias"
TASK_INDEX = "task.index"
OFFSET_SYNCS_TOPIC_LOCATION = "offset-syncs.topic.location"
EMIT_OFFSET_SYNCS = "emit.offset-syncs.enabled"
CLIENT_ID = "client.id"
BOOTSTRAP_SERVERS = "bootstrap.servers"
WORKER_PRODUCER_PREFIX = "producer."

FIXED_CONSUMER_CONFIG = {"enable.auto.commit": "false"}
"""What no key can change."""
DEFAULT_CONSUMER_CONFIG = {"auto.offset.reset": "earliest"}
"""What MirrorMaker 2 sets unless a key does."""

_SECURITY_NAMES = frozenset(CLIENT_SECURITY_NAMES)
_CONFIG_PROVIDERS = "config.providers"
_CLIENT_PROVIDER_KEY = re.compile(
    r"(?:(?:source|target)\.)?(?:admin|consumer|producer)\.(?:override\.)?config\.providers(?:\..*)?"
)


class ClusterSide(StrEnum):
    """One of the two clusters of a flow."""

    SOURCE = "source"
    TARGET = "target"


class ClientType(StrEnum):
    """The type of a Kafka client."""

    ADMIN = "admin"
    CONSUMER = "consumer"
    PRODUCER = "producer"


class ConnectorClient(NamedTuple):
    """One client of a connector. The worker's producer is not among them."""

    side: ClusterSide
    client_type: ClientType


def connector_label(config: Mapping[str, str]) -> str:
    """The connector's part of a client id: `A->B|name`."""
    alias = config.get(TARGET_CLUSTER_ALIAS, ClusterSide.TARGET)
    return f"{config[SOURCE_CLUSTER_ALIAS]}->{alias}|{config[NAME]}"


def task_label(config: Mapping[str, str]) -> str:
    """The task's part of a client id: `A->B|name-0`."""
    return f"{connector_label(config)}-{config.get(TASK_INDEX, '?')}"


def client_config(
    config: Mapping[str, str],
    side: ClusterSide,
    client_type: ClientType,
    *,
    label: str,
    role: str = "",
) -> dict[str, str]:
    """The properties of one client. `role` is the end of its client id."""
    result = client_properties(config, ConnectorClient(side, client_type))
    parts = (result.get(CLIENT_ID), label, role)
    result[CLIENT_ID] = "|".join(part for part in parts if part)
    return result


def client_properties(config: Mapping[str, str], client: ConnectorClient) -> dict[str, str]:
    """The properties of one client, without the client id that Connect derives."""
    side, client_type = client
    result = {
        name: value
        for name, value in _entries_with_prefix(config, f"{side}.cluster.").items()
        if name in _SECURITY_NAMES
    }
    result |= _entries_with_prefix(config, f"{client_type}.")
    result |= _entries_with_prefix(config, f"{side}.{client_type}.")
    if client_type is ClientType.CONSUMER:
        result = DEFAULT_CONSUMER_CONFIG | result | FIXED_CONSUMER_CONFIG
    return _without_providers(result)


def worker_producer_config(
    worker: Mapping[str, str], connector: Mapping[str, str]
) -> dict[str, str]:
    """The properties of the worker's producer for the tasks of one connector."""
    return _without_providers(
        {BOOTSTRAP_SERVERS: worker.get(BOOTSTRAP_SERVERS, "")}
        | _entries_with_prefix(worker, WORKER_PRODUCER_PREFIX)
        | _entries_with_prefix(connector, PRODUCER_OVERRIDE_PREFIX)
    )


def client_provider_faults(config: Mapping[str, str]) -> list[ConfigFault]:
    """Return a fault for each key that declares a config provider for one client."""
    return [
        ConfigFault(
            key,
            f"{key}: a client of a connector has no config providers of its own; the operator"
            f" declares them in the worker's file, as {_CONFIG_PROVIDERS}",
        )
        for key in config
        if _CLIENT_PROVIDER_KEY.fullmatch(key)
    ]


def connector_clients(
    connector_class: str, config: Mapping[str, str]
) -> tuple[ConnectorClient, ...]:
    """The clients that a connector of this class and its tasks build when they start.

    If the location of the offset syncs is invalid, the default location is used.
    """
    location = config.get(OFFSET_SYNCS_TOPIC_LOCATION, "").strip()
    syncs_side = ClusterSide(location) if location in set(ClusterSide) else ClusterSide.SOURCE
    source_admin = ConnectorClient(ClusterSide.SOURCE, ClientType.ADMIN)
    target_admin = ConnectorClient(ClusterSide.TARGET, ClientType.ADMIN)
    if connector_class == HEARTBEAT_CONNECTOR:
        return (target_admin,)
    if connector_class == CHECKPOINT_CONNECTOR:
        checkpoints = ConnectorClient(ClusterSide.TARGET, ClientType.CONSUMER)
        syncs = ConnectorClient(syncs_side, ClientType.CONSUMER)
        return tuple(dict.fromkeys((source_admin, target_admin, checkpoints, syncs)))
    assert connector_class == SOURCE_CONNECTOR, connector_class
    clients = (
        source_admin,
        target_admin,
        ConnectorClient(ClusterSide.SOURCE, ClientType.CONSUMER),
    )
    if config.get(EMIT_OFFSET_SYNCS, "true").strip().lower() == "false":
        return clients
    return (*clients, ConnectorClient(syncs_side, ClientType.PRODUCER))


def offset_syncs_side(config: Mapping[str, str]) -> ClusterSide:
    """The cluster that holds the offset syncs of this flow."""
    return ClusterSide(config.get(OFFSET_SYNCS_TOPIC_LOCATION, ClusterSide.SOURCE).strip())


def offset_syncs_client_config(
    config: Mapping[str, str], client_type: ClientType, *, label: str
) -> dict[str, str]:
    """The properties of a client that reads or writes the offset-syncs topic."""
    side = offset_syncs_side(config)
    role = f"offset-syncs-{side}-{client_type}"
    return client_config(config, side, client_type, label=label, role=role)


def _without_providers(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in properties.items()
        if key != _CONFIG_PROVIDERS and not key.startswith(f"{_CONFIG_PROVIDERS}.")
    }


def _entries_with_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        key.removeprefix(prefix): value
        for key, value in config.items()
        if key.startswith(prefix) and key != prefix
    }
