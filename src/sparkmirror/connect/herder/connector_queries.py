"""Queries answered from the stores: configs, states and active topics of connectors.

Any thread may call; no query waits for the herder thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.definition.value_types import trim
from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorStateInfo,
    RawConfig,
    StateInfo,
    TaskInfo,
)
from sparkmirror.errors import Forbidden, NotFound
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties
from sparkmirror.mirror.connect_topics.connect_statuses import ConnectStatus
from sparkmirror.mirror.connect_topics.java_hash_map import in_hash_map_order
from sparkmirror.store.store_api import ConfigBackingStore, StatusBackingStore

UNKNOWN_TYPE = "unknown"


class Queries(Protocol):
    """Reads of connectors. Any thread may call; no method waits for a cluster."""

    def connectors(self) -> Sequence[str]: ...
    def connector_info(self, name: str) -> ConnectorInfo: ...
    def task_configs(self, name: str) -> Sequence[TaskInfo]: ...
    def connector_status(self, name: str) -> ConnectorStateInfo: ...
    def task_status(self, name: str, task: int) -> StateInfo: ...
    def active_topics(self, name: str) -> Sequence[str]: ...


class ConnectorQueries:
    """Reads the config and status stores."""

    def __init__(
        self, configs: ConfigBackingStore, statuses: StatusBackingStore, *, tracks_topics: bool
    ) -> None:
        self._configs = configs
        self._statuses = statuses
        self._tracks_topics = tracks_topics

    def connectors(self) -> Sequence[str]:
        """Return the names of all connectors."""
        return self._configs.snapshot().connectors()

    def connector_info(self, name: str) -> ConnectorInfo:
        """Return a connector, its config in the order of Java's HashMap. Raises NotFound."""
        state = self._configs.snapshot()
        config = state.connector_config(name)
        if config is None:
            raise NotFound(f"Connector {name} not found")
        return ConnectorInfo(
            name=name,
            config=in_hash_map_order(config),
            tasks=tuple(
                ConnectorTaskId(connector=name, task=task)
                for task in range(len(state.task_configs(name)))
            ),
            type=connector_type(config),
        )

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        """Return a connector's stored task configs. Raises NotFound."""
        state = self._configs.snapshot()
        if state.connector_config(name) is None:
            raise NotFound(f"Connector {name} not found")
        return [
            TaskInfo(
                id=ConnectorTaskId(connector=name, task=task), config=in_hash_map_order(config)
            )
            for task, config in enumerate(state.task_configs(name))
        ]

    def connector_status(self, name: str) -> ConnectorStateInfo:
        """Return the states of a connector and its tasks. Raises NotFound."""
        status = self._statuses.connector_status(name)
        if status is None:
            raise NotFound(f"No status found for connector {name}")
        return ConnectorStateInfo(
            name=name,
            connector=_state(status),
            tasks={task.task: _state(task) for task in self._statuses.task_statuses(name)
                   if task.task is not None},
            type=connector_type(self._configs.snapshot().connector_config(name)),
        )  # fmt: skip

    def task_status(self, name: str, task: int) -> StateInfo:
        """Return the state of one task. Raises NotFound."""
        status = self._statuses.task_status(name, task)
        if status is None:
            raise NotFound(f"No status found for task {name}-{task}")
        return _state(status)

    def active_topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector has used. Raises Forbidden."""
        if not self._tracks_topics:
            raise Forbidden("Topic tracking is disabled.")
        return [status.topic for status in self._statuses.topic_statuses(name)]


def connector_type(config: ConfigProperties | RawConfig | None) -> str:
    """Return `source` or `sink` by the class in a connector's config, else `unknown`."""
    named = None if config is None else config.get(CONNECTOR_CLASS)
    plugin = None if named is None else find_connector(trim(named))
    return UNKNOWN_TYPE if plugin is None else plugin.type.value


def _state(status: ConnectStatus) -> StateInfo:
    return StateInfo(
        state=status.state.value,
        worker_id=status.worker_id,
        version=status.version,
        trace=status.trace,
    )
