"""The herder of one worker: answers everything that Connect's REST API can ask.

    REST ──▶ DistributedHerder ── reads ──▶ ConnectorQueries ──▶ stores
                               ── changes ──▶ herder thread ──▶ ConfigRequests, WorkerConnectors
    config topic ──▶ herder thread ──▶ ConfigUpdateListener ──▶ WorkerConnectors

A process may have several herders: dedicated mode has one per flow. The herder gets its stores and
connector classes from outside and knows no Kafka client, no Spark and no HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from sparkmirror.backoff import seconds_left
from sparkmirror.config.definition import rest_answers
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.herder import config_validator
from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStateInfo,
    LoggerLevel,
    PutConnectorResult,
    RawConfig,
    ServerInfo,
    StateInfo,
    TaskInfo,
    WorkerStatus,
)
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.herder_parts import HerderParts
from sparkmirror.connect.herder.log_levels import check_level
from sparkmirror.connect.herder.mirror_monitor_api import HerderFigures
from sparkmirror.connect.herder.requests.offset_requests import complete
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.runtime.threads.herder_thread import CHECK_S
from sparkmirror.errors import Forbidden, WorkerStarting
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConfigProperties,
    RestartRequest,
    TargetState,
)
from sparkmirror.store.backing_stores import BackingStores

Result = TypeVar("Result")


class DistributedHerder:
    """One worker. Implements `Herder`; any thread may call its methods."""

    def __init__(
        self, settings: WorkerSettings, stores: BackingStores, dependencies: HerderDependencies
    ) -> None:
        self._parts = HerderParts(settings, stores, dependencies)
        self._get_server_info = dependencies.get_server_info
        self._log_levels = dependencies.log_levels

    # -- start and stop --------------------------------------------------------------------------

    def start(self) -> None:
        """Start; does not block. Requests wait until the start has ended."""
        self._parts.lifecycle.start()

    def await_started(self, timeout_s: float) -> bool:
        """Wait for the end of the start; return whether the herder runs. Raises its error."""
        return self._parts.lifecycle.await_started(timeout_s)

    def await_stopped(self, timeout_s: float | None = None) -> Exception | None:
        """Wait until the herder has stopped, or its start has failed; return that failure."""
        return self._parts.lifecycle.await_stopped(timeout_s)

    def shut_down(self) -> None:
        """Stop connectors and tasks, write their statuses, close the stores. Blocks."""
        self._parts.lifecycle.shut_down()

    # -- the worker ------------------------------------------------------------------------------

    def is_leader(self) -> bool:
        """Return whether this worker leads its group."""
        return self._parts.group.is_leader()

    def assignment(self) -> Assignment | None:
        """Return who runs what; None if this worker is no member of its group."""
        return self._parts.group.member.assignment()

    def server_info(self) -> ServerInfo:
        """Return version, commit and Kafka cluster id."""
        return self._get_server_info()

    def health(self) -> WorkerStatus:
        """Return whether the worker can handle requests, and what is wrong. Does not block."""
        return self._parts.health()

    def figures(self) -> HerderFigures:
        """Return what is known of connectors, tasks and their starts. Does not block."""
        return self._parts.figures()

    # -- queries ---------------------------------------------------------------------------------

    def reads_from_memory(self) -> bool:
        """Return whether reads wait for nothing: the internal topics are read."""
        return self._parts.lifecycle.has_started

    def connectors(self) -> Sequence[str]:
        """Return the names of all connectors."""
        return self._parts.find_queries().connectors()

    def stored_config(self, name: str) -> RawConfig | None:
        """Return the config of a connector in the config topic, as far as it is read."""
        return self._parts.config_requests.stored_config(name)

    def connector_info(self, name: str) -> ConnectorInfo:
        """Return config, tasks and type of a connector."""
        return self._parts.find_queries().connector_info(name)

    def connector_status(self, name: str) -> ConnectorStateInfo:
        """Return the states of a connector and its tasks."""
        return self._parts.find_queries().connector_status(name)

    def task_status(self, name: str, task: int) -> StateInfo:
        """Return the state of a task."""
        return self._parts.find_queries().task_status(name, task)

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        """Return a connector's task configs."""
        return self._parts.find_queries().task_configs(name)

    # -- changes ---------------------------------------------------------------------------------

    def create_connector(
        self, name: str, config: RawConfig, initial_state: TargetState | None
    ) -> PutConnectorResult:
        """Create a connector that does not exist yet."""
        self._parts.validator.require_valid(config)

        def action() -> PutConnectorResult:
            self._parts.group.require_leader()
            self._parts.config_requests.create_connector(name, config, initial_state)
            return PutConnectorResult(info=self._info_with_config(name, config), created=True)

        return self._parts.call(action)

    def put_connector_config(self, name: str, config: RawConfig) -> PutConnectorResult:
        """Create a connector, or replace its config."""
        self._parts.validator.require_valid(config)

        def action() -> PutConnectorResult:
            self._parts.group.require_leader()
            created = self._parts.config_requests.put_connector(name, config)
            return PutConnectorResult(info=self._info_with_config(name, config), created=created)

        return self._parts.call(action)

    def patch_connector_config(self, name: str, patch: RawConfig) -> ConnectorInfo:
        """Change some keys of a connector's config; null removes a key."""

        def action() -> ConnectorInfo:
            self._parts.group.require_leader()
            config = self._parts.config_requests.patched_config(name, patch)
            self._parts.validator.require_valid(config)
            self._parts.config_requests.put_connector(name, config)
            return self._info_with_config(name, config)

        return self._parts.call(action)

    def delete_connector(self, name: str) -> None:
        """Delete a connector. Its offsets stay."""
        self._call_as_leader(partial(self._parts.config_requests.delete_connector, name))

    def pause_connector(self, name: str) -> None:
        """Pause a connector and its tasks."""
        self._set_target_state(name, TargetState.PAUSED)

    def resume_connector(self, name: str) -> None:
        """Resume a connector that is paused or stopped."""
        self._set_target_state(name, TargetState.STARTED)

    def stop_connector(self, name: str) -> None:
        """Stop a connector and remove its tasks, until it is resumed."""
        requests = self._parts.config_requests
        self._call_as_leader(partial(requests.set_target_state, name, TargetState.STOPPED))

    def _set_target_state(self, name: str, state: TargetState) -> None:
        self._parts.call(partial(self._parts.config_requests.set_target_state, name, state))

    def _call_as_leader(self, function: Callable[[], Result]) -> Result:
        """Run a function on the herder thread. Raises NotLeader if another worker leads."""

        def action() -> Result:
            self._parts.group.require_leader()
            return function()

        return self._parts.call(action)

    def _info_with_config(self, name: str, config: RawConfig) -> ConnectorInfo:
        """Describe the connector before the change has had any effect."""
        return replace(self._parts.queries.connector_info(name), config=config)

    # -- restarts --------------------------------------------------------------------------------

    def restart_connector(self, name: str) -> None:
        """Restart a connector without its tasks; return when it has started."""
        restarts = self._parts.restart_requests

        def action(future: Future[None]) -> None:
            self._parts.require_connector_owner(name)
            restarts.restart_connector(name, future)

        self._parts.call_with_future(action)

    def restart_connector_and_tasks(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStateInfo:
        """Request a restart of everything or of what failed; return what is restarted."""
        request = RestartRequest(
            connector=name, include_tasks=include_tasks, only_failed=only_failed
        )
        restarts = self._parts.restart_requests
        return self._call_as_leader(partial(restarts.restart_connector_and_tasks, request))

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task; return when its task group has accepted it."""
        restarts = self._parts.restart_requests

        def action(future: Future[None]) -> None:
            self._parts.require_task_owner(name, task)
            restarts.restart_task(name, task, future)

        self._parts.call_with_future(action)

    # -- requests of other workers ---------------------------------------------------------------

    def verify_internal_request(self, headers: Mapping[str, str], signed: bytes) -> None:
        """Raise the error of a request whose signature of these bytes is missing or invalid."""
        self._parts.session_keys.verify(headers, signed)

    def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
        """Write the task configs that a connector's owner has generated. Raises NotLeader."""
        requests = self._parts.config_requests
        self._call_as_leader(partial(requests.put_task_configs, name, configs))

    def fence_zombie_source_tasks(self, name: str) -> None:
        """Fence the producers of a connector's older tasks. Raises NotLeader. Blocks."""
        self._parts.group.require_leader()
        self._parts.config_requests.require_config(name)
        self._parts.fence_zombies(name)

    # -- topics and offsets ----------------------------------------------------------------------

    def active_topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector has used."""
        return self._parts.find_queries().active_topics(name)

    def reset_active_topics(self, name: str) -> None:
        """Reset the active topics of a connector."""
        if not self._parts.settings.tracks_topics:
            raise Forbidden("Topic tracking is disabled.")
        if not self._parts.settings.allows_topic_reset:
            raise Forbidden("Topic tracking reset is disabled.")
        self._parts.call(partial(self._parts.statuses.remove_topics, name))

    def connector_offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Return a connector's stored offsets. Raises WorkerStarting until they are read."""
        self._parts.find_queries().connector_info(name)
        if not self._parts.lifecycle.has_started:
            raise WorkerStarting(self.health().message)
        return self._parts.offset_requests.connector_offsets(name)

    def alter_connector_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> str:
        """Write offsets of a stopped connector; return Connect's message."""
        return self._change_offsets(name, partial(self._parts.offset_requests.alter, name, offsets))

    def reset_connector_offsets(self, name: str) -> str:
        """Remove the offsets of a stopped connector; return Connect's message."""
        return self._change_offsets(name, partial(self._parts.offset_requests.reset, name))

    def _change_offsets(self, name: str, change: Callable[[], str]) -> str:
        """Run the change after the last task has stopped and before another one can start."""
        self._await_tasks_of_other_workers(name)

        def action(future: Future[str]) -> None:
            self._parts.group.require_leader()
            self._parts.connectors.submit_to_task_thread(name, partial(complete, future, change))

        return self._parts.call_with_future(action)

    def _await_tasks_of_other_workers(self, name: str) -> None:
        """Wait until no other worker of the group has a status of the connector's tasks.

        The owner of a task removes its status when the task has stopped. Waits as long as a stop
        may take.
        """
        deadline = time.monotonic() + 2 * self._parts.settings.stop_timeout_s
        while self._parts.has_tasks_elsewhere(name) and time.monotonic() < deadline:
            time.sleep(CHECK_S)

    # -- plug-ins and loggers --------------------------------------------------------------------

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        """Return the plug-ins of this worker."""
        return config_validator.list_plugins(connectors_only=connectors_only)

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return every config key of a plug-in."""
        return rest_answers.connector_plugin_config(plugin, version)

    def validate_connector_config(self, plugin: str, config: RawConfig) -> Mapping[str, Any]:
        """Validate a config; the answer contains the errors."""
        return self._parts.validator.validate(plugin, config)

    def all_logger_levels(self) -> Mapping[str, LoggerLevel]:
        """Return the levels of all loggers."""
        return self._log_levels.all_levels()

    def logger_level(self, name: str) -> LoggerLevel:
        """Return the level of a logger."""
        return self._log_levels.level(name)

    def set_logger_level(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]:
        """Set the level of a logger, on this worker or on all workers of the group."""
        checked = check_level(level)
        if not everywhere:
            return self._log_levels.set_level(name, checked)
        deadline = time.monotonic() + self._parts.settings.write_timeout_s
        self._parts.call(partial(self._parts.config_requests.set_logger_level, name, checked))
        # after this call, this worker has applied it too
        self._parts.call(lambda: None, seconds_left(deadline))
        return ()
