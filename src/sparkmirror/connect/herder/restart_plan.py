"""Which parts of a connector a restart concerns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparkmirror.connect.herder.herder import ConnectorStateInfo, StateInfo
from sparkmirror.mirror.connect_topics.connect_configs import RestartRequest
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState

FAILED = LifecycleState.FAILED.value
RESTARTING = LifecycleState.RESTARTING.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlan:
    """What to begin anew, and what people are told of it."""

    connector: bool
    tasks: tuple[int, ...]
    status: ConnectorStateInfo
    """The status with the parts concerned as RESTARTING. They keep their traces."""


def plan_restart(request: RestartRequest, status: ConnectorStateInfo) -> RestartPlan:
    """Pick everything, or what failed; tasks only if they were asked for."""

    def concerns(part: StateInfo) -> bool:
        return not request.only_failed or part.state == FAILED

    connector = concerns(status.connector)
    tasks = tuple(
        number for number, task in status.tasks.items() if request.include_tasks and concerns(task)
    )
    told = replace(
        status,
        connector=_restarting(status.connector) if connector else status.connector,
        tasks=_with_restarting_tasks(status.tasks, tasks),
    )
    return RestartPlan(connector=connector, tasks=tasks, status=told)


def _with_restarting_tasks(
    states: Mapping[int, StateInfo], tasks: tuple[int, ...]
) -> dict[int, StateInfo]:
    return {
        number: _restarting(state) if number in tasks else state for number, state in states.items()
    }


def _restarting(state: StateInfo) -> StateInfo:
    return replace(state, state=RESTARTING)
