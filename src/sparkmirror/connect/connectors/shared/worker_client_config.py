"""Client properties that tasks take from the worker: for its internal topics, and its producer.

A task writes with the *worker's* producer. That producer's cluster may differ from the connector's
target (`producer.override.bootstrap.servers` changes it). Later properties override earlier ones:

    the worker's bootstrap servers ◀── producer.* of the worker ◀── producer.override.* of the
                                                                     connector
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparkmirror.config.client_configs import WORKER_PRODUCER_PREFIX, worker_producer_config
from sparkmirror.config.secrets.variables import find_variables
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.source_framework import SOURCE_ONLY
from sparkmirror.connect.connectors.shared.typed_config import TypedConfig

_CONNECTOR_OFFSETS_TOPIC = "offsets.storage.topic"
_INTERNAL_TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")


def changing_client_values(
    written: Mapping[str, str], latest: Callable[[], Mapping[str, str]]
) -> Callable[[], Mapping[str, str]] | None:
    """Return a function that reads the values of placeholders in the worker's client properties.

    `written` is the worker's config with its placeholders, `latest` returns it with the values of
    now. None if the properties that tasks use have no placeholders.
    """
    keys = [
        key
        for key, value in written.items()
        if (key.startswith(WORKER_PRODUCER_PREFIX) or key in CLIENT_SECURITY_NAMES)
        and any(find_variables(value))
    ]
    if not keys:
        return None

    def read() -> Mapping[str, str]:
        values = latest()
        return {key: values[key] for key in keys if key in values}

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerClientConfig:
    """A worker's config, with placeholders replaced. Contains secrets."""

    properties: Mapping[str, str] = field(repr=False)

    def producer_properties(self, connector: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of the worker's producer for a connector's tasks."""
        return worker_producer_config(self.properties, connector)

    def client_properties(self) -> dict[str, str]:
        """Return the properties of the worker's clients for its internal topics."""
        return {
            name: self.properties[name] for name in CLIENT_SECURITY_NAMES if name in self.properties
        }

    def offsets_topic(self, connector: Mapping[str, str]) -> str:
        """Return the topic with the connector's source offsets."""
        own = TypedConfig(SOURCE_ONLY, connector).get_string(_CONNECTOR_OFFSETS_TOPIC)
        return own or TypedConfig(DISTRIBUTED, self.properties).get_string("offset.storage.topic")

    def internal_topics(self, connector: Mapping[str, str]) -> tuple[str, ...]:
        """Return the topics of the worker's group, and the connector's offsets topic."""
        topics = {self.properties.get(key, "") for key in _INTERNAL_TOPICS}
        return tuple(sorted({*topics, self.offsets_topic(connector)} - {""}))

    def offsets_client_properties(self, connector: Mapping[str, str]) -> dict[str, str]:
        """Return the client properties for that topic.

        A connector's own offsets topic is on the cluster of its producer.
        """
        own = TypedConfig(SOURCE_ONLY, connector).get_string(_CONNECTOR_OFFSETS_TOPIC)
        return self.producer_properties(connector) if own else self.client_properties()

    @property
    def group_id(self) -> str:
        """The group id of the worker."""
        return TypedConfig(DISTRIBUTED, self.properties).get_string("group.id")

    @property
    def offset_flush_interval_s(self) -> float:
        """The interval between writes of source offsets, in seconds."""
        return TypedConfig(DISTRIBUTED, self.properties).get_int("offset.flush.interval.ms") / 1000

    @property
    def is_exactly_once(self) -> bool:
        """Whether source tasks write in transactions."""
        support = TypedConfig(DISTRIBUTED, self.properties).get_string(
            "exactly.once.source.support"
        )
        return support.lower() == "enabled"
