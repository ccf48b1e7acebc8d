"""The herders of several flows as one herder (dedicated mode).

All flows have connectors of the same names, so REST shows them as `<source>-><target>.<name>`. If
only one enabled flow has a connector of a name, the name alone is accepted. The properties file of
the process configures the connectors: REST can read, pause and restart them, but not change them.

The config topic has a connector that the file disables too, as MirrorMaker 2's has: it does
nothing. It is not listed, and its status is STOPPED with the key that disables it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeVar

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStateInfo,
    Herder,
    LoggerLevel,
    PutConnectorResult,
    RawConfig,
    ServerInfo,
    StateInfo,
    TaskInfo,
    WorkerStatus,
)
from sparkmirror.connect.herder.worker_health import merge_healths
from sparkmirror.errors import Conflict, Forbidden, NotFound
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState
from sparkmirror.model import SourceAndTarget

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSwitches:
    """What the properties file enables of one flow."""

    is_enabled: bool = True
    disabled_by: Mapping[str, str] = field(default_factory=dict)
    """The connectors that do nothing, with the key that disables each."""


class MultiFlowHerder:
    """Implements `Herder` with several herders. Has no state of its own."""

    def __init__(
        self,
        herders: Mapping[SourceAndTarget, Herder],
        file: str,
        switches: Mapping[SourceAndTarget, FlowSwitches] | None = None,
    ) -> None:
        """`file` is the properties file that configures the connectors.

        A flow that `switches` does not have is enabled with all its connectors.
        """
        assert herders, "a node needs at least one flow"
        self._herders = dict(herders)
        self._file = file
        self._switches = {flow: (switches or {}).get(flow, FlowSwitches()) for flow in herders}

    # -- the worker ------------------------------------------------------------------------------

    def server_info(self) -> ServerInfo:
        """Return the first flow's answer: the cluster is its target."""
        return self._first_herder().server_info()

    def health(self) -> WorkerStatus:
        """Return the worst health of the enabled flows, and the flow that has it."""
        return merge_healths(
            {str(flow): herder.health() for flow, herder in self._herders.items()},
            [str(flow) for flow, switches in self._switches.items() if not switches.is_enabled],
        )

    # -- queries ---------------------------------------------------------------------------------

    def reads_from_memory(self) -> bool:
        """Return whether reads wait for no flow."""
        return all(herder.reads_from_memory() for herder in self._herders.values())

    def connectors(self) -> Sequence[str]:
        """Return the connectors of all flows, except the disabled ones."""
        return [
            flow_connector_name(flow, name)
            for flow, herder in self._herders.items()
            for name in herder.connectors()
            if name not in self._switches[flow].disabled_by
        ]

    def connector_info(self, name: str) -> ConnectorInfo:
        """Return config, tasks and type of a connector."""
        flow, herder, own_name = self._find_herder(name)
        return _renamed_info(flow, herder.connector_info(own_name))

    def connector_status(self, name: str) -> ConnectorStateInfo:
        """Return the states of a connector and its tasks."""
        flow, herder, own_name = self._find_herder(name)
        status = herder.connector_status(own_name)
        key = self._switches[flow].disabled_by.get(own_name)
        if key is not None:
            why = f"disabled: set {key} = true in {self._file} and restart the node to run it"
            stopped = replace(status.connector, state=LifecycleState.STOPPED.value, trace=why)
            status = replace(status, connector=stopped)
        return replace(status, name=flow_connector_name(flow, own_name))

    def task_status(self, name: str, task: int) -> StateInfo:
        """Return the state of a task."""
        return self._delegate(name, lambda herder, own_name: herder.task_status(own_name, task))

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        """Return a connector's task configs."""
        flow, herder, own_name = self._find_herder(name)
        return [
            replace(info, id=_renamed_task(flow, info.id)) for info in herder.task_configs(own_name)
        ]

    # -- changes ---------------------------------------------------------------------------------

    def create_connector(
        self, name: str, config: RawConfig, initial_state: TargetState | None
    ) -> PutConnectorResult:
        """Raise Forbidden: the properties file lists the connectors."""
        self._reject_change()

    def put_connector_config(self, name: str, config: RawConfig) -> PutConnectorResult:
        """Raise Forbidden: the properties file configures the connectors."""
        self._reject_change()

    def patch_connector_config(self, name: str, patch: RawConfig) -> ConnectorInfo:
        """Raise Forbidden: the properties file configures the connectors."""
        self._reject_change()

    def delete_connector(self, name: str) -> None:
        """Raise Forbidden: the properties file lists the connectors."""
        self._reject_change()

    def pause_connector(self, name: str) -> None:
        """Pause a connector and its tasks."""
        self._delegate(name, lambda herder, own_name: herder.pause_connector(own_name))

    def resume_connector(self, name: str) -> None:
        """Resume a connector."""
        self._delegate(name, lambda herder, own_name: herder.resume_connector(own_name))

    def stop_connector(self, name: str) -> None:
        """Stop a connector and remove its tasks."""
        self._delegate(name, lambda herder, own_name: herder.stop_connector(own_name))

    def restart_connector(self, name: str) -> None:
        """Restart a connector."""
        self._delegate(name, lambda herder, own_name: herder.restart_connector(own_name))

    def restart_connector_and_tasks(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStateInfo:
        """Restart a connector and its tasks."""
        flow, herder, own_name = self._find_herder(name)
        status = herder.restart_connector_and_tasks(
            own_name, include_tasks=include_tasks, only_failed=only_failed
        )
        return replace(status, name=flow_connector_name(flow, own_name))

    def restart_task(self, name: str, task: int) -> None:
        """Restart a task."""
        self._delegate(name, lambda herder, own_name: herder.restart_task(own_name, task))

    def active_topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector has used."""
        return self._delegate(name, lambda herder, own_name: herder.active_topics(own_name))

    def reset_active_topics(self, name: str) -> None:
        """Reset the active topics of a connector."""
        self._delegate(name, lambda herder, own_name: herder.reset_active_topics(own_name))

    def connector_offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Return a connector's stored offsets."""
        return self._delegate(name, lambda herder, own_name: herder.connector_offsets(own_name))

    def alter_connector_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> str:
        """Write offsets of a stopped connector."""
        return self._delegate(
            name, lambda herder, own_name: herder.alter_connector_offsets(own_name, offsets)
        )

    def reset_connector_offsets(self, name: str) -> str:
        """Remove the offsets of a stopped connector."""
        return self._delegate(
            name, lambda herder, own_name: herder.reset_connector_offsets(own_name)
        )

    # -- the same for every flow -----------------------------------------------------------------

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        """Return the plug-ins of this worker."""
        return self._first_herder().plugins(connectors_only=connectors_only)

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return every config key of a plug-in."""
        return self._first_herder().plugin_config(plugin, version)

    def validate_connector_config(self, plugin: str, config: RawConfig) -> Mapping[str, Any]:
        """Validate a config; the answer contains the errors."""
        return self._first_herder().validate_connector_config(plugin, config)

    def all_logger_levels(self) -> Mapping[str, LoggerLevel]:
        """Return the levels of all loggers of the process."""
        return self._first_herder().all_logger_levels()

    def logger_level(self, name: str) -> LoggerLevel:
        """Return the level of a logger."""
        return self._first_herder().logger_level(name)

    def set_logger_level(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]:
        """Set the level of a logger."""
        return self._first_herder().set_logger_level(name, level, everywhere=everywhere)

    # -- finding the herder------------------------------------------------------------------------

    def _first_herder(self) -> Herder:
        return next(iter(self._herders.values()))

    def _delegate(self, name: str, method: Callable[[Herder, str], Result]) -> Result:
        _, herder, own_name = self._find_herder(name)
        return method(herder, own_name)

    def _find_herder(self, name: str) -> tuple[SourceAndTarget, Herder, str]:
        for flow, herder in self._herders.items():
            prefix = flow_connector_name(flow, "")
            if name.startswith(prefix):
                return flow, herder, name.removeprefix(prefix)
        found = [flow for flow, herder in self._herders.items() if name in herder.connectors()]
        flows = self._enabled_first(found, name)
        if len(flows) > 1:
            names = ", ".join(flow_connector_name(flow, name) for flow in flows)
            raise Conflict(f"Several flows have a connector {name}: say which of {names}")
        if not flows:
            raise NotFound(f"Connector {name} not found")
        return flows[0], self._herders[flows[0]], name

    def _enabled_first(
        self, flows: Sequence[SourceAndTarget], name: str
    ) -> Sequence[SourceAndTarget]:
        """Return the enabled ones of these flows; if none is, those whose connector runs; or all.

        A disabled flow still has a heartbeat connector that runs.
        """
        running = [flow for flow in flows if name not in self._switches[flow].disabled_by]
        enabled = [flow for flow in running if self._switches[flow].is_enabled]
        return enabled or running or flows

    def _reject_change(self) -> NoReturn:
        raise Forbidden(
            f"The connectors of this node are configured by {self._file};"
            " change that file and restart the node"
        )


def flow_connector_name(flow: SourceAndTarget, name: str) -> str:
    """Return the name that REST shows for a flow's connector."""
    return f"{flow}.{name}"


def _renamed_task(flow: SourceAndTarget, task: ConnectorTaskId) -> ConnectorTaskId:
    return replace(task, connector=flow_connector_name(flow, task.connector))


def _renamed_info(flow: SourceAndTarget, info: ConnectorInfo) -> ConnectorInfo:
    return replace(
        info,
        name=flow_connector_name(flow, info.name),
        tasks=tuple(_renamed_task(flow, task) for task in info.tasks),
    )
