"""Which connectors a worker can run: `connector.class` to factories.

`worker.connector_wiring` builds the table; the herder knows no connector class. Tests pass small
connectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.definition.value_types import trim
from sparkmirror.connect.connector import Connector, ConnectorContext, ExpandedConfig
from sparkmirror.connect.task_group import TaskGroup, TaskListener, TaskPreparation
from sparkmirror.errors import ConfigError


class ConnectorFactory(Protocol):
    """Creates connectors of one class."""

    def __call__(self, name: str, context: ConnectorContext) -> Connector:
        """Create one. It must not block or fail."""
        ...


class TaskGroupFactory(Protocol):
    """Creates the task groups of connectors of one class."""

    def __call__(self, connector: str, listener: TaskListener) -> TaskGroup:
        """Create one. It must not block or fail."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredConnector:
    """The factories of one connector class."""

    connector: ConnectorFactory
    task_group: TaskGroupFactory
    preparation: TaskPreparation | None = None
    """None if tasks of this class start at once."""


ConnectorRegistry: TypeAlias = Mapping[str, RegisteredConnector]
"""By full class name, as `config.definition.plugins` lists them."""


def find_registered(
    registry: ConnectorRegistry, config: Mapping[str, str | None]
) -> RegisteredConnector | None:
    """Return the entry of the config's class; None if this worker has none."""
    plugin = find_connector(trim(config.get(CONNECTOR_CLASS) or ""))
    return None if plugin is None else registry.get(plugin.class_name)


def lookup_connector(registry: ConnectorRegistry, config: ExpandedConfig) -> RegisteredConnector:
    """Return the entry of the config's class. Raises ConfigError if this worker has none."""
    registered = find_registered(registry, config)
    if registered is None:
        named = config.get(CONNECTOR_CLASS, "")
        raise ConfigError.of(CONNECTOR_CLASS, f"this worker cannot run connectors of class {named}")
    return registered
