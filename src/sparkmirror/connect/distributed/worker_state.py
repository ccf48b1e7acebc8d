"""What a member of a worker group says when it joins, and what the config topic asks to run.

Connect's names for both are ExtendedWorkerState and ClusterConfigState. Pure values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.connect.connector_task_id import ConnectorTaskId

STATE_VERSION = 1
"""The version of everything that workers of one group exchange or write to Connect's topics. A
change that an older worker would misread raises it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """One member when it joins: who it is, how much config it has read, and what it runs."""

    worker_id: str
    url: str
    """The address of its REST API, for requests of other workers."""
    config_offset: int
    """The offset after the last record of the config topic that it has read."""
    connectors: frozenset[str] = frozenset()
    tasks: frozenset[ConnectorTaskId] = frozenset()
    state_version: int = STATE_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredWork:
    """The connectors and tasks of the config topic."""

    task_counts: Mapping[str, int] = field(default_factory=dict)
    """How many tasks each connector has. A connector without tasks has 0."""
    undivided: frozenset[str] = frozenset()
    """Connectors whose tasks all run on the worker that runs the connector."""
    config_offset: int = -1
    """The offset after the last record of the config topic that was read."""
    last_generation: int = 0
    """The highest generation in the status topic."""

    def tasks(self) -> frozenset[ConnectorTaskId]:
        """Return all tasks."""
        return frozenset(
            ConnectorTaskId(connector=connector, task=task)
            for connector, count in self.task_counts.items()
            for task in range(count)
        )
