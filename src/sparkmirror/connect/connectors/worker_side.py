"""What tasks take from the worker: where its own topics are, and the producer it lends them.

A connector's records go where the *worker's* producer sends them, which need not be the cluster
that the connector calls its target (`producer.override.bootstrap.servers` says otherwise).

    the worker's bootstrap servers ◀── producer.* of the worker ◀── producer.override.* of the
                                                                     connector; later ones win
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.config.overrides import PRODUCER_OVERRIDES
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.source_framework import SOURCE_ONLY
from sparkmirror.connect.connectors.reading import Reading

_BOOTSTRAP = "bootstrap.servers"
_PRODUCER = "producer."
_OWN_OFFSETS = "offsets.storage.topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSide:
    """A worker's config, with placeholders replaced. Holds secrets."""

    properties: Mapping[str, str] = field(repr=False)

    def producer(self, connector: Mapping[str, str]) -> dict[str, str]:
        """The client properties of the producer that the worker lends a connector's tasks."""
        lent = {_BOOTSTRAP: self.properties.get(_BOOTSTRAP, "")}
        return lent | _below(self.properties, _PRODUCER) | _below(connector, PRODUCER_OVERRIDES)

    def client(self) -> dict[str, str]:
        """The client properties with which the worker reaches its own topics."""
        return {
            name: self.properties[name] for name in CLIENT_SECURITY_NAMES if name in self.properties
        }

    def offsets_topic(self, connector: Mapping[str, str]) -> str:
        """The topic that holds the connector's source offsets."""
        own = Reading(SOURCE_ONLY, connector).text(_OWN_OFFSETS)
        return own or Reading(DISTRIBUTED, self.properties).text("offset.storage.topic")

    def offsets_client(self, connector: Mapping[str, str]) -> dict[str, str]:
        """The way to that topic: a connector's own one lies where its records go."""
        own = Reading(SOURCE_ONLY, connector).text(_OWN_OFFSETS)
        return self.producer(connector) if own else self.client()

    @property
    def group_id(self) -> str:
        """The worker group."""
        return Reading(DISTRIBUTED, self.properties).text("group.id")

    @property
    def flush_s(self) -> float:
        """How often source offsets are written, in seconds."""
        return Reading(DISTRIBUTED, self.properties).number("offset.flush.interval.ms") / 1000

    @property
    def is_exactly_once(self) -> bool:
        """Whether source connectors work in transactions."""
        support = Reading(DISTRIBUTED, self.properties).text("exactly.once.source.support")
        return support.lower() == "enabled"


def _below(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        key.removeprefix(prefix): value
        for key, value in properties.items()
        if key.startswith(prefix) and key != prefix
    }
