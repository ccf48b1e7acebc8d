"""The connectors that a file configures, before the herder has read the config topic.

In dedicated mode the properties file names the connectors of a flow. While a cluster is down the
herder cannot read what the config topic holds: it answers with these, as UNASSIGNED, and says what
the start waits for. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.connect.herder.connector_queries import connector_type
from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorStateInfo,
    RawConfig,
    StateInfo,
    TaskInfo,
)
from sparkmirror.errors import NotFound
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredConnectors:
    """Implements `Queries` with the configs of a file. No connector has tasks yet."""

    configs: Mapping[str, RawConfig]
    worker_id: str
    waits_for: str
    """What the start of the herder waits for, and why."""

    def connectors(self) -> Sequence[str]:
        """Return the names in the file."""
        return tuple(self.configs)

    def connector_info(self, name: str) -> ConnectorInfo:
        """Return the config in the file. Raises NotFound."""
        config = self._require_config(name)
        return ConnectorInfo(name=name, config=config, tasks=(), type=connector_type(config))

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        """Return no task. Raises NotFound."""
        self._require_config(name)
        return ()

    def connector_status(self, name: str) -> ConnectorStateInfo:
        """Return UNASSIGNED and what the start waits for. Raises NotFound."""
        return ConnectorStateInfo(
            name=name,
            connector=StateInfo(
                state=LifecycleState.UNASSIGNED.value,
                worker_id=self.worker_id,
                version=None,
                trace=self.waits_for,
            ),
            tasks={},
            type=connector_type(self._require_config(name)),
        )

    def task_status(self, name: str, task: int) -> StateInfo:
        """Raise NotFound: there is no task yet."""
        raise NotFound(f"No status found for task {name}-{task}")

    def active_topics(self, name: str) -> Sequence[str]:
        """Return no topic. Raises NotFound."""
        self._require_config(name)
        return ()

    def _require_config(self, name: str) -> RawConfig:
        if name not in self.configs:
            raise NotFound(f"Connector {name} not found")
        return self.configs[name]
