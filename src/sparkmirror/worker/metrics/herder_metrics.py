"""The figures of the herders of one process, with Connect's names. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.herder import worker_health
from sparkmirror.connect.herder.herder import StateInfo, WorkerStatus
from sparkmirror.connect.herder.mirror_monitor_api import HerderFigures
from sparkmirror.metrics import connect_metrics, sparkmirror_metrics, task_metrics
from sparkmirror.metrics.definition import Figure, MetricDefinition
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState
from sparkmirror.worker.metrics.coordinator_figures import (
    HerderReading,
    coordinator_figures,
    rebalance_figures,
)

_HEALTHS = (
    worker_health.STARTING,
    worker_health.HEALTHY,
    worker_health.DEGRADED,
    worker_health.UNHEALTHY,
)
_UNASSIGNED = LifecycleState.UNASSIGNED.value.lower()
_NO_PROBLEM = StateInfo(state=LifecycleState.RUNNING.value, worker_id="", version=None)


def health_figures(health: WorkerStatus) -> Iterator[Figure]:
    """Yield the health of the process."""
    for status in _HEALTHS:
        yield Figure(
            definition=sparkmirror_metrics.WORKER_HEALTH,
            labels={"status": status},
            value=float(status == health.status),
        )


def herder_figures(readings: Sequence[HerderReading]) -> Iterator[Figure]:
    """Yield the figures of all herders. Those without a label are of the whole process."""
    herders = [reading.herder for reading in readings]
    shares = [one.assignment.own_share for one in herders if one.assignment is not None]
    yield _figure(connect_metrics.CONNECTOR_COUNT, sum(len(one.connectors) for one in shares))
    yield _figure(connect_metrics.TASK_COUNT, sum(len(one.tasks) for one in shares))
    yield from _startup_figures(herders)
    yield from rebalance_figures(readings)
    for reading in readings:
        yield from coordinator_figures(reading.herder, reading.rebalances)
        yield from _task_figures(reading)


def _startup_figures(herders: Iterable[HerderFigures]) -> Iterator[Figure]:
    for kind, startups, attempts, success, failure in (
        (
            "connector",
            [one.connector_startups for one in herders],
            connect_metrics.CONNECTOR_STARTUP_ATTEMPTS,
            connect_metrics.CONNECTOR_STARTUP_SUCCESS,
            connect_metrics.CONNECTOR_STARTUP_FAILURE,
        ),
        (
            "task",
            [one.task_startups for one in herders],
            connect_metrics.TASK_STARTUP_ATTEMPTS,
            connect_metrics.TASK_STARTUP_SUCCESS,
            connect_metrics.TASK_STARTUP_FAILURE,
        ),
    ):
        succeeded = sum(one.success for one in startups)
        failed = sum(one.failure for one in startups)
        yield _figure(attempts, succeeded + failed)
        yield _figure(success, succeeded)
        yield _figure(failure, failed)
        total = max(succeeded + failed, 1)
        shares = connect_metrics.STARTUP_SHARES
        yield _figure(shares[kind, "success"], succeeded / total)
        yield _figure(shares[kind, "failure"], failed / total)


def _task_figures(reading: HerderReading) -> Iterator[Figure]:
    """Yield the states of the tasks that this worker runs."""
    if reading.herder.assignment is None:
        return
    share = reading.herder.assignment.own_share
    names = {*share.connectors, *(task.connector for task in share.tasks)}
    for name in sorted(names):
        connector = {"connector": jmx_sanitize(reading.prefix + name)}
        states = {
            task: _task_state(reading.herder, name, task) for task in share.task_numbers(name)
        }
        counts = Counter(states.values())
        yield _figure(connect_metrics.TOTAL_TASK_COUNT, len(states), connector)
        for state, definition in connect_metrics.TASK_COUNTS_BY_STATE.items():
            yield _figure(definition, counts[state], connector)
        for task, state in sorted(states.items()):
            labels = connector | {"task": str(task), "status": state}
            yield _figure(connect_metrics.CONNECTOR_STATUS, 1, labels)
            yield _figure(connect_metrics.TASK_STATUS, 1, labels)
            yield from _time_figures(reading.herder, name, task, connector)
        if name in share.connectors:
            yield from _connector_figures(reading.herder, name, connector)
        yield _figure(
            sparkmirror_metrics.PROBLEMS, _count_problems(reading.herder, name), connector
        )


def _time_figures(
    herder: HerderFigures, name: str, task: int, connector: dict[str, str]
) -> Iterator[Figure]:
    """Yield for how much of its time a task was running or paused; nothing before its start."""
    shares = herder.task_times.get(ConnectorTaskId(connector=name, task=task))
    if shares is not None:
        labels = connector | {"task": str(task)}
        yield _figure(task_metrics.RUNNING_RATIO, shares.running, labels)
        yield _figure(task_metrics.PAUSE_RATIO, shares.paused, labels)


def _connector_figures(
    herder: HerderFigures, name: str, connector: dict[str, str]
) -> Iterator[Figure]:
    """Yield class, type and version of a connector that this worker runs."""
    status = herder.statuses.get(name)
    texts = {
        connect_metrics.CONNECTOR_CLASS: herder.classes.get(name, ""),
        connect_metrics.CONNECTOR_TYPE: status.type if status else "",
        connect_metrics.CONNECTOR_VERSION: (status.connector.version or "") if status else "",
    }
    for definition, text in texts.items():
        if text:
            yield _figure(definition, 1, connector | {definition.labels[-1]: text})


def _task_state(herder: HerderFigures, connector: str, task: int) -> str:
    status = herder.statuses.get(connector)
    state = None if status is None else status.tasks.get(task)
    return _UNASSIGNED if state is None else state.state.lower()


def _count_problems(herder: HerderFigures, name: str) -> int:
    """Return the problems of what this worker runs: its tasks, and the connector if it has it."""
    status, assignment = herder.statuses.get(name), herder.assignment
    if status is None or assignment is None:
        return 0
    share = assignment.own_share
    own = share.task_numbers(name)
    tasks = {task: state for task, state in status.tasks.items() if task in own}
    connector = status.connector if name in share.connectors else _NO_PROBLEM
    own_status = replace(status, connector=connector, tasks=tasks)
    return sum(1 for _ in worker_health.connector_problems(own_status))


def _figure(
    definition: MetricDefinition, value: float, labels: dict[str, str] | None = None
) -> Figure:
    return Figure(definition=definition, value=float(value), labels=labels or {})
