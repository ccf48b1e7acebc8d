"""Applies changes of the config topic on the herder thread."""

from __future__ import annotations

import logging

from sparkmirror.connect.herder.connector_queries import ConnectorQueries
from sparkmirror.connect.herder.log_levels import LogLevels
from sparkmirror.connect.herder.requests.restart_plan import plan_restart
from sparkmirror.connect.runtime.worker_connectors import WorkerConnectors
from sparkmirror.errors import NotFound
from sparkmirror.mirror.connect_topics.connect_configs import (
    ClusterLoggerLevel,
    ConfigRecord,
    ConnectorConfig,
    ConnectorTargetState,
    RestartRequest,
    TasksCommit,
)

log = logging.getLogger(__name__)


class ConfigUpdateListener:
    """Passes each change to the part of the herder that it concerns."""

    def __init__(
        self, connectors: WorkerConnectors, queries: ConnectorQueries, log_levels: LogLevels
    ) -> None:
        self._connectors = connectors
        self._queries = queries
        self._log_levels = log_levels

    def apply(self, change: ConfigRecord) -> None:
        """Apply one record of the config topic. Requires the herder thread."""
        match change:
            case ConnectorConfig():
                self._connectors.on_connector_config_update(change.connector)
            case TasksCommit():
                self._connectors.on_task_config_update(change.connector)
            case ConnectorTargetState():
                self._connectors.reconcile(change.connector)
            case RestartRequest():
                self._restart(change)
            case ClusterLoggerLevel():
                self._log_levels.set_level(change.namespace, change.level)
            case _:
                pass  # session keys and task counts are read from the snapshot when needed

    def _restart(self, request: RestartRequest) -> None:
        try:
            plan = plan_restart(request, self._queries.connector_status(request.connector))
        except NotFound:
            log.info("Connector %s has no status, so it is not restarted", request.connector)
            return
        self._connectors.restart_connector_and_tasks(
            request.connector, connector=plan.connector, tasks=plan.tasks
        )
