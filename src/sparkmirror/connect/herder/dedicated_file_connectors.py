"""The connectors that a file configures, before the herder has read the config topic.

In dedicated mode the properties file names the connectors of a flow. While a cluster is down the
herder cannot read what the config topic holds: it answers with these, as UNASSIGNED, and says what
the start waits for. After that it answers so for those that are not in the config topic, or have no
status yet. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sparkmirror.connect.herder.connector_queries import Queries, connector_type
from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorStateInfo,
    RawConfig,
    StateInfo,
    TaskInfo,
)
from sparkmirror.errors import NotFound
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class DedicatedFileConnectors:
    """Implements `Queries` with the configs of a file. No connector has tasks yet."""

    configs: Mapping[str, RawConfig] = field(repr=False)
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


@dataclass(frozen=True, slots=True)
class QueriesWithFallback:
    """Implements `Queries` with two others: the second one answers what the first does not find."""

    first: Queries
    second: Queries

    def connectors(self) -> Sequence[str]:
        """Return the names of both."""
        return tuple(dict.fromkeys((*self.first.connectors(), *self.second.connectors())))

    def connector_info(self, name: str) -> ConnectorInfo:
        """Return config, tasks and type of a connector. Raises NotFound."""
        return self._answer(lambda queries: queries.connector_info(name))

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        """Return the task configs of a connector. Raises NotFound."""
        return self._answer(lambda queries: queries.task_configs(name))

    def connector_status(self, name: str) -> ConnectorStateInfo:
        """Return the states of a connector and its tasks. Raises NotFound."""
        return self._answer(lambda queries: queries.connector_status(name))

    def task_status(self, name: str, task: int) -> StateInfo:
        """Return the state of a task. Raises NotFound."""
        return self.first.task_status(name, task)

    def active_topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector has used."""
        return self.first.active_topics(name)

    def _answer(self, query: Callable[[Queries], Answer]) -> Answer:
        try:
            return query(self.first)
        except NotFound:
            return query(self.second)
