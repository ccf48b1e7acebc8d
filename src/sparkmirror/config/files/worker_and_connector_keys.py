"""The parts of a flow that have a config: its worker and its three connectors.

A part reads the keys of its table, and all keys below some prefixes. It ignores any other key of
its config.
"""

from __future__ import annotations

from enum import StrEnum

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.enrichment import ALIAS_LIST_KEYS
from sparkmirror.config.files.flow_config_precedence import (
    CLIENT_TYPES,
    CONFIG_PROVIDERS_PREFIX,
    MirrorConnector,
)
from sparkmirror.config.tables.additions import SOURCE_ADDITIONS
from sparkmirror.config.tables.checkpoint import CHECKPOINT
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.config.tables.plugins.filters import CONFIG_FILTER, GROUP_FILTER, TOPIC_FILTER
from sparkmirror.config.tables.rest_server import WORKER_REST
from sparkmirror.config.tables.source import SOURCE
from sparkmirror.config.tables.source_framework import SOURCE_ONLY


class FlowPart(StrEnum):
    """One part of a flow."""

    WORKER = "worker"
    SOURCE = "source"
    CHECKPOINT = "checkpoint"
    HEARTBEAT = "heartbeat"

    @property
    def connector(self) -> MirrorConnector | None:
        """The connector of this part; None for the worker."""
        return None if self is FlowPart.WORKER else MirrorConnector[self.name]

    @property
    def config_def(self) -> ConfigDef:
        """The keys that the part declares, with their defaults."""
        return _CONFIG_DEFS[self]

    def reads(self, key: str) -> bool:
        """Whether the part reads this key of its config."""
        if self is FlowPart.WORKER:
            return key in _WORKER_NAMES or key.startswith(_WORKER_PREFIXES)
        for side in _CLUSTER_PREFIXES:
            if key.startswith(side) and key not in self.config_def:
                return key.removeprefix(side) in CLIENT_SECURITY_NAMES
        if key.startswith(_TRANSFORMATION_PREFIXES):
            return self in _TRANSFORMING_PARTS
        return key in _CONNECTOR_NAMES[self] or key.startswith(_CONNECTOR_PREFIXES)


_CONFIG_DEFS = {
    FlowPart.WORKER: DISTRIBUTED,
    FlowPart.SOURCE: SOURCE.updated(TOPIC_FILTER)
    .updated(CONFIG_FILTER)
    .updated(SOURCE_ONLY)
    .updated(SOURCE_ADDITIONS),
    FlowPart.CHECKPOINT: CHECKPOINT.updated(TOPIC_FILTER)
    .updated(GROUP_FILTER)
    .updated(SOURCE_ONLY),
    FlowPart.HEARTBEAT: HEARTBEAT.updated(SOURCE_ONLY),
}
"""The filters read the connector's config too, so their keys are among the connector's."""

_CONVERTERS = ("key.converter.", "value.converter.", "header.converter.")
_CLIENTS = tuple(f"{client_type}." for client_type in CLIENT_TYPES)
_CLUSTER_PREFIXES = ("source.cluster.", "target.cluster.")

_WORKER_PREFIXES = (
    *_CONVERTERS,
    *_CLIENTS,
    f"{CONFIG_PROVIDERS_PREFIX}.",
    "offset.storage.",
    "config.storage.",
    "status.storage.",
    "metrics.context.",
)

# In dedicated mode the REST server belongs to the process, and any override is allowed.
_WORKER_NAMES = (
    frozenset(DISTRIBUTED.names)
    - frozenset(WORKER_REST.names)
    - {"connector.client.config.override.policy", "connector.client.config.override.allowlist"}
)

_CONNECTOR_PREFIXES = (
    *_CONVERTERS,
    *_CLIENTS,
    *(f"{side}.{client}" for side in ("source", "target") for client in _CLIENTS),
    f"{CONFIG_PROVIDERS_PREFIX}.",
    "replication.policy.",
    "topic.creation.",
)

_TRANSFORMING_PARTS = (FlowPart.SOURCE, FlowPart.CHECKPOINT)
"""A source connector transforms records. A checkpoint connector reads the same keys for the names
of the topics to which they route."""
_TRANSFORMATION_PREFIXES = tuple(f"{key}." for key in ALIAS_LIST_KEYS)

# Connectors declare the security names, but their clients read them only below a prefix.
_CONNECTOR_NAMES = {
    part: frozenset(part.config_def.names)
    - frozenset(CLIENT_SECURITY_NAMES)
    - frozenset(() if part in _TRANSFORMING_PARTS else ALIAS_LIST_KEYS)
    for part in FlowPart
    if part is not FlowPart.WORKER
}
_CONNECTOR_NAMES[FlowPart.CHECKPOINT] |= {"emit.offset-syncs.enabled"}
