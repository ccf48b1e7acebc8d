"""What tasks take from the worker: where its own topics are, and the producer it lends them.

A connector's records go where the *worker's* producer sends them, which need not be the cluster
that the connector calls its target (`producer.override.bootstrap.servers` says otherwise).

    the worker's bootstrap servers ◀── producer.* of the worker ◀── producer.override.* of the
                                                                     connector; later ones win
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.config.client_configs import worker_producer_config
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.source_framework import SOURCE_ONLY
from sparkmirror.connect.connectors.shared.typed_config import TypedConfig

_CONNECTOR_OFFSETS_TOPIC = "offsets.storage.topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerClientConfig:
    """A worker's config, with placeholders replaced. Holds secrets."""

    properties: Mapping[str, str] = field(repr=False)

    def producer_properties(self, connector: Mapping[str, str]) -> dict[str, str]:
        """The client properties of the producer that the worker lends a connector's tasks."""
        return worker_producer_config(self.properties, connector)

    def client_properties(self) -> dict[str, str]:
        """The client properties with which the worker reaches its own topics."""
        return {
            name: self.properties[name] for name in CLIENT_SECURITY_NAMES if name in self.properties
        }

    def offsets_topic(self, connector: Mapping[str, str]) -> str:
        """The topic that holds the connector's source offsets."""
        own = TypedConfig(SOURCE_ONLY, connector).get_string(_CONNECTOR_OFFSETS_TOPIC)
        return own or TypedConfig(DISTRIBUTED, self.properties).get_string("offset.storage.topic")

    def offsets_client_properties(self, connector: Mapping[str, str]) -> dict[str, str]:
        """The way to that topic: a connector's own one lies where its records go."""
        own = TypedConfig(SOURCE_ONLY, connector).get_string(_CONNECTOR_OFFSETS_TOPIC)
        return self.producer_properties(connector) if own else self.client_properties()

    @property
    def group_id(self) -> str:
        """The worker group."""
        return TypedConfig(DISTRIBUTED, self.properties).get_string("group.id")

    @property
    def offset_flush_interval_s(self) -> float:
        """How often source offsets are written, in seconds."""
        return TypedConfig(DISTRIBUTED, self.properties).get_int("offset.flush.interval.ms") / 1000

    @property
    def is_exactly_once(self) -> bool:
        """Whether source connectors work in transactions."""
        support = TypedConfig(DISTRIBUTED, self.properties).get_string(
            "exactly.once.source.support"
        )
        return support.lower() == "enabled"
