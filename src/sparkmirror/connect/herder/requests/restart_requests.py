"""Requests to restart a connector, one of its tasks, or both. The texts are Connect's.

Belongs to the herder thread.
"""

from __future__ import annotations

from concurrent.futures import Future

from sparkmirror.connect.herder.connector_queries import ConnectorQueries
from sparkmirror.connect.herder.herder import ConnectorStateInfo
from sparkmirror.connect.herder.requests.config_requests import ConfigRequests
from sparkmirror.connect.herder.requests.restart_plan import plan_restart
from sparkmirror.connect.runtime.worker_connectors import WorkerConnectors
from sparkmirror.errors import Conflict, NotFound
from sparkmirror.mirror.connect_topics.connect_configs import RestartRequest


class RestartRequests:
    """Checks requests, then restarts what they name."""

    def __init__(
        self,
        connectors: WorkerConnectors,
        queries: ConnectorQueries,
        config_requests: ConfigRequests,
    ) -> None:
        self._connectors = connectors
        self._queries = queries
        self._config_requests = config_requests

    def restart_connector(self, name: str, future: Future[None]) -> None:
        """Restart a connector without its tasks. The future completes when it has started."""
        self._require_connector(name)
        self._connectors.restart_connector(name, future)

    def restart_connector_and_tasks(self, request: RestartRequest) -> ConnectorStateInfo:
        """Write a restart request to the config topic; return the status that it leads to."""
        self._require_connector(request.connector)
        try:
            status = self._queries.connector_status(request.connector)
        except NotFound:
            raise NotFound(f"Status for connector {request.connector} not found") from None
        self._config_requests.request_restart(request)
        return plan_restart(request, status).status

    def restart_task(self, name: str, task: int, future: Future[None]) -> None:
        """Restart one task. The future completes when its task group has accepted it."""
        self._require_connector(name)
        if task < len(self._queries.task_configs(name)):
            self._connectors.restart_task(name, task, future)
        elif self._connectors.has_had_task(name, task):
            raise Conflict(
                "Cannot complete request momentarily due to no known leader URL, likely "
                "because a rebalance was underway."
            )
        else:
            raise NotFound(f"Unknown task: {name}-{task}")

    def _require_connector(self, name: str) -> None:
        if name not in self._queries.connectors():
            raise NotFound(f"Unknown connector: {name}")
