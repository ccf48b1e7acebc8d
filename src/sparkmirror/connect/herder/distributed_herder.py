"""The herder: everything a Connect worker can be asked.

    REST ──▶ Herder ── reads ──▶ Answers ──▶ stores
                    ── changes ──▶ the herder's thread ──▶ ConfigRequests, Herd

One herder is one worker; a process may hold several (dedicated mode has one for each flow). It is
given its stores and connectors and knows no Kafka, no Spark, no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from sparkmirror.config.definition import rest_answers
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
from sparkmirror.connect.herder.herder_lifecycle import HerderDependencies, HerderLifecycle
from sparkmirror.connect.herder.log_levels import check_level
from sparkmirror.connect.herder.restart_plan import plan_restart
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.errors import (
    Conflict,
    Forbidden,
    MirrorError,
    NotFound,
    RequestError,
    RequestFailed,
)
from sparkmirror.mirror.connect_topics.connect_configs import RestartRequest, TargetState
from sparkmirror.store.backing_stores import BackingStores


class DistributedHerder:
    """One worker. Implements `Herding`; every method of that may be called by any thread."""

    def __init__(
        self, settings: WorkerSettings, stores: BackingStores, surroundings: HerderDependencies
    ) -> None:
        self._settings = settings
        self._get_server_info = surroundings.get_server_info
        self._log_levels = surroundings.log_levels
        self._validator = config_validator.ConfigValidator(settings.terms, surroundings.providers)
        self._lifecycle = HerderLifecycle(settings, stores, surroundings)

    # -- beginning and end -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin; returns at once. Whoever asks something waits until the start is over."""
        self._lifecycle.start()

    def await_started(self, within_s: float) -> bool:
        """Wait for the end of the start; say whether it came. Raises what made it fail."""
        return self._lifecycle.await_started(within_s)

    def await_stopped(self, within_s: float | None = None) -> Exception | None:
        """Wait until it has ended, or died: then return why."""
        return self._lifecycle.await_stopped(within_s)

    def shut_down(self) -> None:
        """End connectors and tasks, write that down, close the stores."""
        self._lifecycle.shut_down()

    # -- the worker ------------------------------------------------------------------------------

    def server_info(self) -> ServerInfo:
        """Say who this is."""
        return self._get_server_info()

    def health(self) -> WorkerStatus:
        """Say whether the herder's thread takes part in life."""
        if self._lifecycle.is_responsive(self._settings.health_timeout_s):
            said = "Worker has completed startup and is ready to handle requests."
            return WorkerStatus(status="healthy", message=said)
        stage = self._lifecycle.tick_stage.summary()
        if not self._lifecycle.has_started:
            said = f"Worker is still starting up. {stage}"
            return WorkerStatus(status="starting", message=said.rstrip())
        said = (
            "Worker was unable to handle this request and may be unable to handle other requests."
        )
        return WorkerStatus(status="unhealthy", message=f"{said} {stage}".rstrip())

    # -- reading ---------------------------------------------------------------------------------

    def connectors(self) -> Sequence[str]:
        """List all connectors."""
        return self._lifecycle.await_queries().connectors()

    def connector_info(self, name: str) -> ConnectorInfo:
        """Say what a connector is."""
        return self._lifecycle.await_queries().connector_info(name)

    def connector_status(self, name: str) -> ConnectorStateInfo:
        """Say how a connector and its tasks do."""
        return self._lifecycle.await_queries().connector_status(name)

    def task_status(self, name: str, task: int) -> StateInfo:
        """Say how a task does."""
        return self._lifecycle.await_queries().task_status(name, task)

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        """List a connector's task configs."""
        return self._lifecycle.await_queries().task_configs(name)

    # -- changing --------------------------------------------------------------------------------

    def create_connector(
        self, name: str, config: RawConfig, initial_state: TargetState | None
    ) -> PutConnectorResult:
        """Make a connector that is not there yet."""
        self._validator.require_valid(config)

        def errand() -> PutConnectorResult:
            self._lifecycle.config_requests.create_connector(name, config, initial_state)
            return PutConnectorResult(info=self._info_with_config(name, config), created=True)

        return self._lifecycle.call(errand)

    def put_connector_config(self, name: str, config: RawConfig) -> PutConnectorResult:
        """Make a connector, or give it another config."""
        self._validator.require_valid(config)

        def errand() -> PutConnectorResult:
            created = self._lifecycle.config_requests.put_connector(name, config)
            return PutConnectorResult(info=self._info_with_config(name, config), created=created)

        return self._lifecycle.call(errand)

    def patch_connector_config(self, name: str, patch: RawConfig) -> ConnectorInfo:
        """Change some keys of a connector's config; null takes a key away."""

        def errand() -> ConnectorInfo:
            config = self._lifecycle.config_requests.patched_config(name, patch)
            self._validator.require_valid(config)
            self._lifecycle.config_requests.put_connector(name, config)
            return self._info_with_config(name, config)

        return self._lifecycle.call(errand)

    def delete_connector(self, name: str) -> None:
        """Remove a connector. Its offsets stay."""
        self._lifecycle.call(partial(self._lifecycle.config_requests.delete_connector, name))

    def pause_connector(self, name: str) -> None:
        """Have a connector and its tasks hold still."""
        self._lifecycle.call(
            partial(self._lifecycle.config_requests.set_target_state, name, TargetState.PAUSED)
        )

    def resume_connector(self, name: str) -> None:
        """Have a connector run again, whether it was paused or stopped."""
        self._lifecycle.call(
            partial(self._lifecycle.config_requests.set_target_state, name, TargetState.STARTED)
        )

    def stop_connector(self, name: str) -> None:
        """Have a connector end and its tasks removed, until it is resumed."""
        self._lifecycle.call(
            partial(self._lifecycle.config_requests.set_target_state, name, TargetState.STOPPED)
        )

    def _info_with_config(self, name: str, config: RawConfig) -> ConnectorInfo:
        """Describe it as of now, before anything has followed from the change."""
        return replace(self._lifecycle.queries.connector_info(name), config=config)

    # -- restarting ------------------------------------------------------------------------------

    def restart_connector(self, name: str) -> None:
        """Begin a connector anew, but not its tasks; returns when it has started."""

        def errand(waiting: Future[None]) -> None:
            self._require_connector(name)
            self._lifecycle.connectors.restart_connector(name, waiting)

        self._lifecycle.call_with_future(errand)

    def restart_connector_and_tasks(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStateInfo:
        """Have all, or what failed, begun anew; returns at once what is concerned."""
        request = RestartRequest(
            connector=name, include_tasks=include_tasks, only_failed=only_failed
        )

        def errand() -> ConnectorStateInfo:
            self._require_connector(name)
            try:
                status = self._lifecycle.queries.connector_status(name)
            except NotFound:
                raise NotFound(f"Status for connector {name} not found") from None
            self._lifecycle.config_requests.request_restart(request)
            return plan_restart(request, status).status

        return self._lifecycle.call(errand)

    def restart_task(self, name: str, task: int) -> None:
        """Begin one task anew."""

        def errand(waiting: Future[None]) -> None:
            self._require_connector(name)
            if task < len(self._lifecycle.queries.task_configs(name)):
                self._lifecycle.connectors.restart_task(name, task, waiting)
            elif self._lifecycle.connectors.has_had_task(name, task):
                raise Conflict(
                    "Cannot complete request momentarily due to no known leader URL, likely "
                    "because a rebalance was underway."
                )
            else:
                raise NotFound(f"Unknown task: {name}-{task}")

        self._lifecycle.call_with_future(errand)

    def _require_connector(self, name: str) -> None:
        if name not in self._lifecycle.queries.connectors():
            raise NotFound(f"Unknown connector: {name}")

    # -- topics and offsets ----------------------------------------------------------------------

    def active_topics(self, name: str) -> Sequence[str]:
        """List the topics that a connector was seen to use."""
        return self._lifecycle.await_queries().active_topics(name)

    def reset_active_topics(self, name: str) -> None:
        """Forget which topics a connector uses."""
        if not self._settings.tracks_topics:
            raise Forbidden("Topic tracking is disabled.")
        if not self._settings.allows_topic_reset:
            raise Forbidden("Topic tracking reset is disabled.")
        self._lifecycle.call(partial(self._lifecycle.statuses.remove_topics, name))

    def connector_offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """List what is stored of a connector's offsets."""
        self._lifecycle.await_queries()
        try:
            return self._lifecycle.offset_requests.connector_offsets(name)
        except MirrorError as error:
            raise _as_request_error(error) from error

    def alter_connector_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> str:
        """Write offsets of a stopped connector."""
        return self._change_offsets(
            name, partial(self._lifecycle.offset_requests.alter, name, offsets)
        )

    def reset_connector_offsets(self, name: str) -> str:
        """Forget the offsets of a stopped connector."""
        return self._change_offsets(name, partial(self._lifecycle.offset_requests.reset, name))

    def _change_offsets(self, name: str, change: Callable[[], str]) -> str:
        """Do it when the last task has stopped, and before another one can start."""

        def errand(answer: Future[str]) -> None:
            self._lifecycle.connectors.submit_to_task_thread(
                name, partial(_complete, answer, change)
            )

        return self._lifecycle.call_with_future(errand)

    # -- plug-ins and loggers --------------------------------------------------------------------

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        """List what this worker offers."""
        return config_validator.list_plugins(connectors_only=connectors_only)

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        """List every key that a plug-in reads."""
        return rest_answers.connector_plugin_config(plugin, version)

    def validate_connector_config(self, plugin: str, config: RawConfig) -> Mapping[str, Any]:
        """Judge a config; faults are part of the answer."""
        return self._validator.validate(plugin, config)

    def all_logger_levels(self) -> Mapping[str, LoggerLevel]:
        """List all loggers."""
        return self._log_levels.all_levels()

    def logger_level(self, name: str) -> LoggerLevel:
        """Say how loud a logger is."""
        return self._log_levels.level(name)

    def set_logger_level(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]:
        """Make a logger louder or quieter, on this worker or on all of the group."""
        wanted = check_level(level)
        if not everywhere:
            return self._log_levels.set_level(name, wanted)
        self._lifecycle.call(
            partial(self._lifecycle.config_requests.set_logger_level, name, wanted)
        )
        self._lifecycle.call(lambda: None)  # by then this worker has heeded it too
        return ()


def _complete(answer: Future[str], change: Callable[[], str]) -> None:
    try:
        answer.set_result(change())
    except MirrorError as error:
        answer.set_exception(_as_request_error(error))
    except Exception as error:  # noqa: BLE001  it is raised where it was asked
        answer.set_exception(error)


def _as_request_error(error: MirrorError) -> RequestError:
    return error if isinstance(error, RequestError) else RequestFailed(str(error))
