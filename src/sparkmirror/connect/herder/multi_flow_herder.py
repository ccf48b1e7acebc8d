"""The herders of several flows, asked as if they were one worker (dedicated mode).

Each flow has connectors of the same names, so here they are called `<source>-><target>.<name>`.
Where only one flow has a connector of a name, the name alone will do. What the connectors are is
said in the file that the process was started with: it can be read, paused, restarted and so on
here, but changed only there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStateInfo,
    ConnectorTaskId,
    Herder,
    LoggerLevel,
    PutConnectorResult,
    RawConfig,
    ServerInfo,
    StateInfo,
    TaskInfo,
    WorkerStatus,
)
from sparkmirror.errors import Conflict, Forbidden, NotFound
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.model import SourceAndTarget

Answer = TypeVar("Answer")

HEALTHY = "healthy"


class MultiFlowHerder:
    """Implements `Herding` over several others. Holds nothing of its own."""

    def __init__(self, herders: Mapping[SourceAndTarget, Herder], file: str) -> None:
        """`file` is where people change what cannot be changed here."""
        assert herders, "a node without flows does not start"
        self._herders = dict(herders)
        self._file = file

    # -- the worker ------------------------------------------------------------------------------

    def server_info(self) -> ServerInfo:
        """Say who this is; the cluster is the first flow's target."""
        return self._first_herder().server_info()

    def health(self) -> WorkerStatus:
        """The first flow that is not healthy speaks for all."""
        healths = {flow: herder.health() for flow, herder in self._herders.items()}
        for flow, health in healths.items():
            if health.status != HEALTHY:
                return replace(health, message=f"{flow}: {health.message}")
        return next(iter(healths.values()))

    # -- reading ---------------------------------------------------------------------------------

    def connectors(self) -> Sequence[str]:
        """List the connectors of all flows."""
        return [
            flow_connector_name(flow, name)
            for flow, herder in self._herders.items()
            for name in herder.connectors()
        ]

    def connector_info(self, name: str) -> ConnectorInfo:
        """Say what a connector is."""
        flow, herder, own = self._find_herder(name)
        return _renamed_info(flow, herder.connector_info(own))

    def connector_status(self, name: str) -> ConnectorStateInfo:
        """Say how a connector and its tasks do."""
        flow, herder, own = self._find_herder(name)
        return replace(herder.connector_status(own), name=flow_connector_name(flow, own))

    def task_status(self, name: str, task: int) -> StateInfo:
        """Say how a task does."""
        return self._delegate(name, lambda herder, own: herder.task_status(own, task))

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        """List a connector's task configs."""
        flow, herder, own = self._find_herder(name)
        return [replace(info, id=_renamed_task(flow, info.id)) for info in herder.task_configs(own)]

    # -- changing --------------------------------------------------------------------------------

    def create_connector(
        self, name: str, config: RawConfig, initial_state: TargetState | None
    ) -> PutConnectorResult:
        """Refuse: the file says which connectors there are."""
        self._reject_change()

    def put_connector_config(self, name: str, config: RawConfig) -> PutConnectorResult:
        """Refuse: the file says what the connectors are."""
        self._reject_change()

    def patch_connector_config(self, name: str, patch: RawConfig) -> ConnectorInfo:
        """Refuse: the file says what the connectors are."""
        self._reject_change()

    def delete_connector(self, name: str) -> None:
        """Refuse: the file says which connectors there are."""
        self._reject_change()

    def pause_connector(self, name: str) -> None:
        """Have a connector and its tasks hold still."""
        self._delegate(name, lambda herder, own: herder.pause_connector(own))

    def resume_connector(self, name: str) -> None:
        """Have a connector run again."""
        self._delegate(name, lambda herder, own: herder.resume_connector(own))

    def stop_connector(self, name: str) -> None:
        """Have a connector give up its tasks."""
        self._delegate(name, lambda herder, own: herder.stop_connector(own))

    def restart_connector(self, name: str) -> None:
        """Start a connector anew."""
        self._delegate(name, lambda herder, own: herder.restart_connector(own))

    def restart_connector_and_tasks(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStateInfo:
        """Start a connector and tasks of it anew."""
        flow, herder, own = self._find_herder(name)
        status = herder.restart_connector_and_tasks(
            own, include_tasks=include_tasks, only_failed=only_failed
        )
        return replace(status, name=flow_connector_name(flow, own))

    def restart_task(self, name: str, task: int) -> None:
        """Start a task anew."""
        self._delegate(name, lambda herder, own: herder.restart_task(own, task))

    def active_topics(self, name: str) -> Sequence[str]:
        """List the topics a connector has used."""
        return self._delegate(name, lambda herder, own: herder.active_topics(own))

    def reset_active_topics(self, name: str) -> None:
        """Forget the topics a connector has used."""
        self._delegate(name, lambda herder, own: herder.reset_active_topics(own))

    def connector_offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """List how far a connector came."""
        return self._delegate(name, lambda herder, own: herder.connector_offsets(own))

    def alter_connector_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> str:
        """Say anew how far a stopped connector came."""
        return self._delegate(
            name, lambda herder, own: herder.alter_connector_offsets(own, offsets)
        )

    def reset_connector_offsets(self, name: str) -> str:
        """Forget how far a stopped connector came."""
        return self._delegate(name, lambda herder, own: herder.reset_connector_offsets(own))

    # -- the same for every flow -----------------------------------------------------------------

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        """List plug-ins."""
        return self._first_herder().plugins(connectors_only=connectors_only)

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        """List a plug-in's keys."""
        return self._first_herder().plugin_config(plugin, version)

    def validate_connector_config(self, plugin: str, config: RawConfig) -> Mapping[str, Any]:
        """Judge a config."""
        return self._first_herder().validate_connector_config(plugin, config)

    def all_logger_levels(self) -> Mapping[str, LoggerLevel]:
        """List loggers: they are the whole process's."""
        return self._first_herder().all_logger_levels()

    def logger_level(self, name: str) -> LoggerLevel:
        """Say a logger's level."""
        return self._first_herder().logger_level(name)

    def set_logger_level(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]:
        """Set a logger's level."""
        return self._first_herder().set_logger_level(name, level, everywhere=everywhere)

    # -- who is meant ----------------------------------------------------------------------------

    def _first_herder(self) -> Herder:
        return next(iter(self._herders.values()))

    def _delegate(self, name: str, question: Callable[[Herder, str], Answer]) -> Answer:
        _, herder, own = self._find_herder(name)
        return question(herder, own)

    def _find_herder(self, name: str) -> tuple[SourceAndTarget, Herder, str]:
        for flow, herder in self._herders.items():
            prefix = flow_connector_name(flow, "")
            if name.startswith(prefix):
                return flow, herder, name.removeprefix(prefix)
        found = [(f, h, name) for f, h in self._herders.items() if name in h.connectors()]
        if len(found) > 1:
            names = ", ".join(flow_connector_name(flow, name) for flow, _, _ in found)
            raise Conflict(f"Several flows have a connector {name}: say which of {names}")
        if not found:
            raise NotFound(f"Connector {name} not found")
        return found[0]

    def _reject_change(self) -> NoReturn:
        raise Forbidden(
            f"The connectors of this node are configured by {self._file};"
            " change that file and restart the node"
        )


def flow_connector_name(flow: SourceAndTarget, name: str) -> str:
    """How a flow's connector is called among those of other flows."""
    return f"{flow}.{name}"


def _renamed_task(flow: SourceAndTarget, task: ConnectorTaskId) -> ConnectorTaskId:
    return replace(task, connector=flow_connector_name(flow, task.connector))


def _renamed_info(flow: SourceAndTarget, info: ConnectorInfo) -> ConnectorInfo:
    return replace(
        info,
        name=flow_connector_name(flow, info.name),
        tasks=tuple(_renamed_task(flow, task) for task in info.tasks),
    )
