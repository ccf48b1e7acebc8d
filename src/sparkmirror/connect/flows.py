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

from sparkmirror.connect.herding import (
    Config,
    ConnectorInfo,
    ConnectorStatus,
    Health,
    Herding,
    LoggerLevel,
    Offsets,
    Put,
    StateInfo,
    TaskId,
    TaskInfo,
    WorkerInfo,
)
from sparkmirror.errors import Conflict, Forbidden, NotFound
from sparkmirror.mirror.connect_configs import TargetState
from sparkmirror.model import SourceAndTarget

Answer = TypeVar("Answer")

HEALTHY = "healthy"


class FlowsHerding:
    """Implements `Herding` over several others. Holds nothing of its own."""

    def __init__(self, herders: Mapping[SourceAndTarget, Herding], file: str) -> None:
        """`file` is where people change what cannot be changed here."""
        assert herders, "a node without flows does not start"
        self._herders = dict(herders)
        self._file = file

    # -- the worker ------------------------------------------------------------------------------

    def worker(self) -> WorkerInfo:
        """Say who this is; the cluster is the first flow's target."""
        return self._any().worker()

    def health(self) -> Health:
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
            called(flow, name)
            for flow, herder in self._herders.items()
            for name in herder.connectors()
        ]

    def info(self, name: str) -> ConnectorInfo:
        """Say what a connector is."""
        flow, herder, own = self._find(name)
        return _renamed_info(flow, herder.info(own))

    def status(self, name: str) -> ConnectorStatus:
        """Say how a connector and its tasks do."""
        flow, herder, own = self._find(name)
        return replace(herder.status(own), name=called(flow, own))

    def task_status(self, name: str, task: int) -> StateInfo:
        """Say how a task does."""
        return self._ask(name, lambda herder, own: herder.task_status(own, task))

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """List a connector's task configs."""
        flow, herder, own = self._find(name)
        return [replace(info, id=_renamed_task(flow, info.id)) for info in herder.tasks(own)]

    # -- changing --------------------------------------------------------------------------------

    def create(self, name: str, config: Config, initial_state: TargetState | None) -> Put:
        """Refuse: the file says which connectors there are."""
        self._refuse()

    def put_config(self, name: str, config: Config) -> Put:
        """Refuse: the file says what the connectors are."""
        self._refuse()

    def patch_config(self, name: str, patch: Config) -> ConnectorInfo:
        """Refuse: the file says what the connectors are."""
        self._refuse()

    def delete(self, name: str) -> None:
        """Refuse: the file says which connectors there are."""
        self._refuse()

    def pause(self, name: str) -> None:
        """Have a connector and its tasks hold still."""
        self._ask(name, lambda herder, own: herder.pause(own))

    def resume(self, name: str) -> None:
        """Have a connector run again."""
        self._ask(name, lambda herder, own: herder.resume(own))

    def stop(self, name: str) -> None:
        """Have a connector give up its tasks."""
        self._ask(name, lambda herder, own: herder.stop(own))

    def restart(self, name: str) -> None:
        """Start a connector anew."""
        self._ask(name, lambda herder, own: herder.restart(own))

    def restart_with(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Start a connector and tasks of it anew."""
        flow, herder, own = self._find(name)
        status = herder.restart_with(own, include_tasks=include_tasks, only_failed=only_failed)
        return replace(status, name=called(flow, own))

    def restart_task(self, name: str, task: int) -> None:
        """Start a task anew."""
        self._ask(name, lambda herder, own: herder.restart_task(own, task))

    def active_topics(self, name: str) -> Sequence[str]:
        """List the topics a connector has used."""
        return self._ask(name, lambda herder, own: herder.active_topics(own))

    def reset_active_topics(self, name: str) -> None:
        """Forget the topics a connector has used."""
        self._ask(name, lambda herder, own: herder.reset_active_topics(own))

    def offsets(self, name: str) -> Sequence[Offsets]:
        """List how far a connector came."""
        return self._ask(name, lambda herder, own: herder.offsets(own))

    def alter_offsets(self, name: str, offsets: Sequence[Offsets]) -> str:
        """Say anew how far a stopped connector came."""
        return self._ask(name, lambda herder, own: herder.alter_offsets(own, offsets))

    def reset_offsets(self, name: str) -> str:
        """Forget how far a stopped connector came."""
        return self._ask(name, lambda herder, own: herder.reset_offsets(own))

    # -- the same for every flow -----------------------------------------------------------------

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        """List plug-ins."""
        return self._any().plugins(connectors_only=connectors_only)

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        """List a plug-in's keys."""
        return self._any().plugin_config(plugin, version)

    def validate(self, plugin: str, config: Config) -> Mapping[str, Any]:
        """Judge a config."""
        return self._any().validate(plugin, config)

    def loggers(self) -> Mapping[str, LoggerLevel]:
        """List loggers: they are the whole process's."""
        return self._any().loggers()

    def logger(self, name: str) -> LoggerLevel:
        """Say a logger's level."""
        return self._any().logger(name)

    def set_logger(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]:
        """Set a logger's level."""
        return self._any().set_logger(name, level, everywhere=everywhere)

    # -- who is meant ----------------------------------------------------------------------------

    def _any(self) -> Herding:
        return next(iter(self._herders.values()))

    def _ask(self, name: str, question: Callable[[Herding, str], Answer]) -> Answer:
        _, herder, own = self._find(name)
        return question(herder, own)

    def _find(self, name: str) -> tuple[SourceAndTarget, Herding, str]:
        for flow, herder in self._herders.items():
            prefix = called(flow, "")
            if name.startswith(prefix):
                return flow, herder, name.removeprefix(prefix)
        found = [(f, h, name) for f, h in self._herders.items() if name in h.connectors()]
        if len(found) > 1:
            names = ", ".join(called(flow, name) for flow, _, _ in found)
            raise Conflict(f"Several flows have a connector {name}: say which of {names}")
        if not found:
            raise NotFound(f"Connector {name} not found")
        return found[0]

    def _refuse(self) -> NoReturn:
        raise Forbidden(
            f"The connectors of this node are configured by {self._file};"
            " change that file and restart the node"
        )


def called(flow: SourceAndTarget, name: str) -> str:
    """How a flow's connector is called among those of other flows."""
    return f"{flow}.{name}"


def _renamed_task(flow: SourceAndTarget, task: TaskId) -> TaskId:
    return replace(task, connector=called(flow, task.connector))


def _renamed_info(flow: SourceAndTarget, info: ConnectorInfo) -> ConnectorInfo:
    return replace(
        info,
        name=called(flow, info.name),
        tasks=tuple(_renamed_task(flow, task) for task in info.tasks),
    )
