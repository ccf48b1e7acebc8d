"""Which connectors a worker can run, and how they are made: `connector.class` to factories.

The herder is given this table and knows no connector by name. Tests give it small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.definition.validation import CONNECTOR_CLASS
from sparkmirror.config.definition.value_types import trim
from sparkmirror.connect.connector import Connector, ConnectorContext, ExpandedConfig
from sparkmirror.connect.task_group import TaskGroup, TaskListener
from sparkmirror.errors import ConfigError


class ConnectorFactory(Protocol):
    """Makes connectors of one kind."""

    def __call__(self, name: str, context: ConnectorContext) -> Connector:
        """Make one; nothing may block or fail yet."""
        ...


class TaskGroupFactory(Protocol):
    """Makes what runs the tasks of connectors of one kind."""

    def __call__(self, connector: str, listener: TaskListener) -> TaskGroup:
        """Make one; nothing may block or fail yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredConnector:
    """How connectors of one class are made and run."""

    connector: ConnectorFactory
    task_group: TaskGroupFactory


ConnectorRegistry: TypeAlias = Mapping[str, RegisteredConnector]
"""By full class name, as `config.definition.plugins` lists them."""


def lookup_connector(kinds: ConnectorRegistry, config: ExpandedConfig) -> RegisteredConnector:
    """Find the kind that a config names; raise ConfigError if this worker has none such."""
    named = config.get(CONNECTOR_CLASS, "")
    plugin = find_connector(trim(named))
    kind = None if plugin is None else kinds.get(plugin.class_name)
    if kind is None:
        raise ConfigError.of(CONNECTOR_CLASS, f"this worker cannot run connectors of class {named}")
    return kind
