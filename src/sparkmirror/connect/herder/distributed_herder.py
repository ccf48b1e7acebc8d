"""The herder of one worker: answers everything that Connect's REST API can ask.

    REST ──▶ DistributedHerder ── reads ──▶ ConnectorQueries ──▶ stores
                               ── changes ──▶ herder thread ──▶ ConfigRequests, WorkerConnectors
    config topic ──▶ herder thread ──▶ ConfigChanges ──▶ WorkerConnectors

A process may have several herders: dedicated mode has one per flow. The herder gets its stores and
connector classes from outside and knows no Kafka client, no Spark and no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from sparkmirror.config.definition import rest_answers
from sparkmirror.connect.herder import config_validator
from sparkmirror.connect.herder.config_changes import ConfigChanges
from sparkmirror.connect.herder.config_requests import ConfigRequests
from sparkmirror.connect.herder.connector_queries import ConnectorQueries
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
from sparkmirror.connect.herder.herder_lifecycle import HerderLifecycle
from sparkmirror.connect.herder.log_levels import check_level
from sparkmirror.connect.herder.offset_requests import OffsetRequests
from sparkmirror.connect.herder.restart_plan import plan_restart
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.runtime.config_transformer import ConfigTransformer
from sparkmirror.connect.runtime.group_membership import GroupMembership
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.connect.runtime.status.status_writer import StatusWriter
from sparkmirror.connect.runtime.threads.herder_thread import HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connectors import WorkerConnectors
from sparkmirror.connect.runtime.zombie_fencing import ZombieFencing
from sparkmirror.errors import (
    Conflict,
    Forbidden,
    MirrorError,
    NotFound,
    RequestError,
    RequestFailed,
)
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConfigRecord,
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
        self._settings = settings
        self._get_server_info = dependencies.get_server_info
        self._log_levels = dependencies.log_levels
        self._validator = config_validator.ConfigValidator(settings.terms, dependencies.providers)
        self._tick_stage = TickThreadStage()
        self._herder_thread = HerderThread(
            f"DistributedHerder-{settings.worker_id}", self._tick_stage
        )
        self._queries = ConnectorQueries(
            stores.configs, stores.statuses, tracks_topics=settings.tracks_topics
        )
        self._config_requests = ConfigRequests(stores.configs, self._tick_stage)
        run_context = self._build_run_context(stores, dependencies)
        self._offset_requests = OffsetRequests(stores.configs, stores.offsets, run_context)
        membership = GroupMembership(settings.worker_id)
        self._statuses = StatusWriter(stores.statuses, membership)
        self._connectors = WorkerConnectors(
            run_context, stores.configs, self._statuses, membership, self._tick_stage,
            tracks_topics=settings.tracks_topics,
        )  # fmt: skip
        self._config_changes = ConfigChanges(self._connectors, self._queries, self._log_levels)
        self._lifecycle = HerderLifecycle(
            settings,
            stores,
            herder_thread=self._herder_thread,
            tick_stage=self._tick_stage,
            membership=membership,
            statuses=self._statuses,
            connectors=self._connectors,
            on_config_change=self._on_config_change,
        )

    def _build_run_context(
        self, stores: BackingStores, dependencies: HerderDependencies
    ) -> RunContext:
        fencing = None
        if self._settings.terms.exactly_once:
            assert dependencies.fencer is not None, "exactly-once support needs a fencer"
            fencing = ZombieFencing(stores.configs, dependencies.fencer, self._settings.group_id)
        return RunContext(
            registry=dependencies.registry,
            transformer=ConfigTransformer(dependencies.providers),
            herder_thread=self._herder_thread,
            stop_timeout_s=self._settings.stop_timeout_s,
            fence_zombies=fencing,
        )

    def _on_config_change(self, change: ConfigRecord) -> None:
        self._herder_thread.submit(partial(self._config_changes.apply, change))

    # -- start and stop --------------------------------------------------------------------------

    def start(self) -> None:
        """Start; does not block. Requests wait until the start has ended."""
        self._lifecycle.start()

    def await_started(self, timeout_s: float) -> bool:
        """Wait for the end of the start; return whether it has ended. Raises its error."""
        return self._lifecycle.await_started(timeout_s)

    def await_stopped(self, timeout_s: float | None = None) -> Exception | None:
        """Wait until the herder has stopped, or its start has failed; return that failure."""
        return self._lifecycle.await_stopped(timeout_s)

    def shut_down(self) -> None:
        """Stop connectors and tasks, write their statuses, close the stores. Blocks."""
        self._lifecycle.shut_down()

    # -- how requests reach the parts ------------------------------------------------------------

    def _await_queries(self) -> ConnectorQueries:
        """Return the queries when the stores have been read."""
        self._lifecycle.require_started()
        return self._queries

    def _call(self, function: Callable[[], Result]) -> Result:
        """Run a function on the herder thread and return its result."""
        self._lifecycle.require_started()
        return self._herder_thread.call(function, self._settings.request_timeout_s)

    def _call_with_future(self, action: Callable[[Future[Result]], None]) -> Result:
        """Run an action on the herder thread; wait until a later action completes its future."""
        self._lifecycle.require_started()
        return self._herder_thread.call_with_future(action, self._settings.request_timeout_s)

    def _is_responsive(self) -> bool:
        """Return whether the herder thread answers within the timeout."""
        try:
            self._herder_thread.call(lambda: None, self._settings.health_timeout_s)
        except RequestFailed:
            return False
        return not self._lifecycle.has_failed

    # -- the worker ------------------------------------------------------------------------------

    def server_info(self) -> ServerInfo:
        """Return version, commit and Kafka cluster id."""
        return self._get_server_info()

    def health(self) -> WorkerStatus:
        """Return whether the herder thread answers within the timeout."""
        if self._is_responsive():
            message = "Worker has completed startup and is ready to handle requests."
            return WorkerStatus(status="healthy", message=message)
        stage = self._tick_stage.summary()
        if not self._lifecycle.has_started:
            message = f"Worker is still starting up. {stage}"
            return WorkerStatus(status="starting", message=message.rstrip())
        message = (
            "Worker was unable to handle this request and may be unable to handle other requests."
        )
        return WorkerStatus(status="unhealthy", message=f"{message} {stage}".rstrip())

    # -- queries ---------------------------------------------------------------------------------

    def connectors(self) -> Sequence[str]:
        """Return the names of all connectors."""
        return self._await_queries().connectors()

    def connector_info(self, name: str) -> ConnectorInfo:
        """Return config, tasks and type of a connector."""
        return self._await_queries().connector_info(name)

    def connector_status(self, name: str) -> ConnectorStateInfo:
        """Return the states of a connector and its tasks."""
        return self._await_queries().connector_status(name)

    def task_status(self, name: str, task: int) -> StateInfo:
        """Return the state of a task."""
        return self._await_queries().task_status(name, task)

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        """Return a connector's task configs."""
        return self._await_queries().task_configs(name)

    # -- changes ---------------------------------------------------------------------------------

    def create_connector(
        self, name: str, config: RawConfig, initial_state: TargetState | None
    ) -> PutConnectorResult:
        """Create a connector that does not exist yet."""
        self._validator.require_valid(config)

        def action() -> PutConnectorResult:
            self._config_requests.create_connector(name, config, initial_state)
            return PutConnectorResult(info=self._info_with_config(name, config), created=True)

        return self._call(action)

    def put_connector_config(self, name: str, config: RawConfig) -> PutConnectorResult:
        """Create a connector, or replace its config."""
        self._validator.require_valid(config)

        def action() -> PutConnectorResult:
            created = self._config_requests.put_connector(name, config)
            return PutConnectorResult(info=self._info_with_config(name, config), created=created)

        return self._call(action)

    def patch_connector_config(self, name: str, patch: RawConfig) -> ConnectorInfo:
        """Change some keys of a connector's config; null removes a key."""

        def action() -> ConnectorInfo:
            config = self._config_requests.patched_config(name, patch)
            self._validator.require_valid(config)
            self._config_requests.put_connector(name, config)
            return self._info_with_config(name, config)

        return self._call(action)

    def delete_connector(self, name: str) -> None:
        """Delete a connector. Its offsets stay."""
        self._call(partial(self._config_requests.delete_connector, name))

    def pause_connector(self, name: str) -> None:
        """Pause a connector and its tasks."""
        self._call(partial(self._config_requests.set_target_state, name, TargetState.PAUSED))

    def resume_connector(self, name: str) -> None:
        """Resume a connector that is paused or stopped."""
        self._call(partial(self._config_requests.set_target_state, name, TargetState.STARTED))

    def stop_connector(self, name: str) -> None:
        """Stop a connector and remove its tasks, until it is resumed."""
        self._call(partial(self._config_requests.set_target_state, name, TargetState.STOPPED))

    def _info_with_config(self, name: str, config: RawConfig) -> ConnectorInfo:
        """Describe the connector before the change has had any effect."""
        return replace(self._queries.connector_info(name), config=config)

    # -- restarts --------------------------------------------------------------------------------

    def restart_connector(self, name: str) -> None:
        """Restart a connector without its tasks; return when it has started."""

        def action(future: Future[None]) -> None:
            self._require_connector(name)
            self._connectors.restart_connector(name, future)

        self._call_with_future(action)

    def restart_connector_and_tasks(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStateInfo:
        """Request a restart of everything or of what failed; return what is restarted."""
        request = RestartRequest(
            connector=name, include_tasks=include_tasks, only_failed=only_failed
        )

        def action() -> ConnectorStateInfo:
            self._require_connector(name)
            try:
                status = self._queries.connector_status(name)
            except NotFound:
                raise NotFound(f"Status for connector {name} not found") from None
            self._config_requests.request_restart(request)
            return plan_restart(request, status).status

        return self._call(action)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task; return when its task group has accepted it."""

        def action(future: Future[None]) -> None:
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

        self._call_with_future(action)

    def _require_connector(self, name: str) -> None:
        if name not in self._queries.connectors():
            raise NotFound(f"Unknown connector: {name}")

    # -- topics and offsets ----------------------------------------------------------------------

    def active_topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector has used."""
        return self._await_queries().active_topics(name)

    def reset_active_topics(self, name: str) -> None:
        """Reset the active topics of a connector."""
        if not self._settings.tracks_topics:
            raise Forbidden("Topic tracking is disabled.")
        if not self._settings.allows_topic_reset:
            raise Forbidden("Topic tracking reset is disabled.")
        self._call(partial(self._statuses.remove_topics, name))

    def connector_offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Return a connector's stored offsets."""
        self._await_queries()
        try:
            return self._offset_requests.connector_offsets(name)
        except MirrorError as error:
            raise _as_request_error(error) from error

    def alter_connector_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> str:
        """Write offsets of a stopped connector; return Connect's message."""
        return self._change_offsets(name, partial(self._offset_requests.alter, name, offsets))

    def reset_connector_offsets(self, name: str) -> str:
        """Remove the offsets of a stopped connector; return Connect's message."""
        return self._change_offsets(name, partial(self._offset_requests.reset, name))

    def _change_offsets(self, name: str, change: Callable[[], str]) -> str:
        """Run the change after the last task has stopped and before another one can start."""

        def action(future: Future[str]) -> None:
            self._connectors.submit_to_task_thread(name, partial(_complete, future, change))

        return self._call_with_future(action)

    # -- plug-ins and loggers --------------------------------------------------------------------

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        """Return the plug-ins of this worker."""
        return config_validator.list_plugins(connectors_only=connectors_only)

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return every config key of a plug-in."""
        return rest_answers.connector_plugin_config(plugin, version)

    def validate_connector_config(self, plugin: str, config: RawConfig) -> Mapping[str, Any]:
        """Validate a config; the answer contains the errors."""
        return self._validator.validate(plugin, config)

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
        self._call(partial(self._config_requests.set_logger_level, name, checked))
        self._call(lambda: None)  # after this call, this worker has applied it too
        return ()


def _complete(future: Future[str], change: Callable[[], str]) -> None:
    try:
        future.set_result(change())
    except MirrorError as error:
        future.set_exception(_as_request_error(error))
    except Exception as error:  # noqa: BLE001  it is raised in the calling thread
        future.set_exception(error)


def _as_request_error(error: MirrorError) -> RequestError:
    return error if isinstance(error, RequestError) else RequestFailed(str(error))
