"""The clients of a connector: how each is configured from the connector's config.

Knows which prefixes feed which client and in what order, and how clients are named. The three
connectors use admins, consumers and producers on both clusters; the producer of mirrored records is
not among them, it belongs to the worker.

    source.cluster.*  (only connection and security names)
      └► consumer.*  └► source.consumer.*  └► forced values     later ones win

The match of a prefix is naive, as in Kafka: `consumer.poll.timeout.ms` also gives the consumer a
setting `poll.timeout.ms`, which it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES

NAME = "name"
SOURCE_CLUSTER_ALIAS = "source.cluster.alias"
TARGET_CLUSTER_ALIAS = "target.cluster.alias"
TASK_INDEX = "task.index"
OFFSET_SYNCS_TOPIC_LOCATION = "offset-syncs.topic.location"
CLIENT_ID = "client.id"

_SECURITY_NAMES = frozenset(CLIENT_SECURITY_NAMES)


class ClusterSide(StrEnum):
    """Which cluster of the flow."""

    SOURCE = "source"
    TARGET = "target"


class ClientType(StrEnum):
    """Which client."""

    ADMIN = "admin"
    CONSUMER = "consumer"
    PRODUCER = "producer"


def connector_label(config: Mapping[str, str]) -> str:
    """What a connector calls itself in client ids: `A->B|name`."""
    alias = config.get(TARGET_CLUSTER_ALIAS, ClusterSide.TARGET)
    return f"{config[SOURCE_CLUSTER_ALIAS]}->{alias}|{config[NAME]}"


def task_label(config: Mapping[str, str]) -> str:
    """What a task calls itself in client ids: `A->B|name-0`."""
    return f"{connector_label(config)}-{config.get(TASK_INDEX, '?')}"


def client_config(
    config: Mapping[str, str], side: ClusterSide, kind: ClientType, *, label: str, role: str = ""
) -> dict[str, str]:
    """The properties of one client. `role` says what it is for, `replication-consumer` perhaps."""
    result = {
        name: value
        for name, value in _entries_with_prefix(config, f"{side}.cluster.").items()
        if name in _SECURITY_NAMES
    }
    result |= _entries_with_prefix(config, f"{kind}.") | _entries_with_prefix(
        config, f"{side}.{kind}."
    )
    if kind is ClientType.CONSUMER:
        result["enable.auto.commit"] = "false"
        result.setdefault("auto.offset.reset", "earliest")
    parts = (result.get(CLIENT_ID), label, role)
    result[CLIENT_ID] = "|".join(part for part in parts if part)
    return result


def offset_syncs_side(config: Mapping[str, str]) -> ClusterSide:
    """The cluster that holds the offset syncs of this flow."""
    return ClusterSide(config.get(OFFSET_SYNCS_TOPIC_LOCATION, ClusterSide.SOURCE).strip())


def offset_syncs_client_config(
    config: Mapping[str, str], kind: ClientType, *, label: str
) -> dict[str, str]:
    """The properties of a client that works on the offset-syncs topic."""
    side = offset_syncs_side(config)
    return client_config(config, side, kind, label=label, role=f"offset-syncs-{side}-{kind}")


def _entries_with_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        key.removeprefix(prefix): value
        for key, value in config.items()
        if key.startswith(prefix) and key != prefix
    }
