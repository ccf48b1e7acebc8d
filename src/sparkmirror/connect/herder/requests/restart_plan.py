"""Selects what a restart request restarts. Pure."""

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
    """What to restart, and the status that the request returns."""

    connector: bool
    tasks: tuple[int, ...]
    status: ConnectorStateInfo
    """The status, with restarted parts as RESTARTING. They keep their traces."""


def plan_restart(request: RestartRequest, status: ConnectorStateInfo) -> RestartPlan:
    """Select everything or only what failed; tasks only if the request includes them."""

    def is_selected(part: StateInfo) -> bool:
        return not request.only_failed or part.state == FAILED

    connector = is_selected(status.connector)
    tasks = tuple(
        number
        for number, task in status.tasks.items()
        if request.include_tasks and is_selected(task)
    )
    restarting = replace(
        status,
        connector=_restarting(status.connector) if connector else status.connector,
        tasks=_with_restarting_tasks(status.tasks, tasks),
    )
    return RestartPlan(connector=connector, tasks=tasks, status=restarting)


def _with_restarting_tasks(
    states: Mapping[int, StateInfo], tasks: tuple[int, ...]
) -> dict[int, StateInfo]:
    return {
        number: _restarting(state) if number in tasks else state for number, state in states.items()
    }


def _restarting(state: StateInfo) -> StateInfo:
    return replace(state, state=RESTARTING)
