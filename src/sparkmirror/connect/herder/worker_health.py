"""The answer of `/health`: decided from what the worker knows already. Pure.

starting    the stores are not read yet, or connectors of the file are not configured yet; the
            message says what the worker waits for
unhealthy   the worker cannot read or write its topics, or its herder thread hangs
degraded    the worker answers requests, but it would not notice a second worker, or a connector or
            task has a problem
healthy     nothing of this
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sparkmirror.connect.herder.herder import ConnectorStateInfo, StateInfo, WorkerStatus
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState

STARTING = "starting"
UNHEALTHY = "unhealthy"
DEGRADED = "degraded"
HEALTHY = "healthy"
_SEVERITY = (HEALTHY, DEGRADED, STARTING, UNHEALTHY)

_READY = "Worker has completed startup and is ready to handle requests."
_UNABLE = "Worker was unable to handle this request and may be unable to handle other requests."


def starting(stage: str, problem: str) -> WorkerStatus:
    """The worker starts. `stage` says what its thread does, `problem` why that does not end."""
    return WorkerStatus(
        status=STARTING, message=_join("Worker is still starting up.", stage, problem)
    )


def unhealthy(stage: str, problem: str) -> WorkerStatus:
    """The worker cannot handle requests: for a known problem, or its thread hangs in a stage."""
    return WorkerStatus(status=UNHEALTHY, message=_join(_UNABLE, problem or stage))


def ready(statuses: Iterable[ConnectorStateInfo], warning: str = "") -> WorkerStatus:
    """The worker handles requests; it may have a warning, its connectors and tasks problems."""
    of_connectors = (text for status in statuses for text in connector_problems(status))
    problems = [*filter(None, [warning]), *of_connectors]
    if not problems:
        return WorkerStatus(status=HEALTHY, message=_READY)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return WorkerStatus(status=DEGRADED, message=f"{_READY} But {problems[0]}{more}")


def connector_problems(status: ConnectorStateInfo) -> Iterator[str]:
    """Yield a line for the connector and for each task that failed or has a problem."""
    if _has_problem(status.connector):
        yield f"connector {status.name}: {_first_line(status.connector)}"
    for task, state in sorted(status.tasks.items()):
        if _has_problem(state):
            yield f"task {status.name}-{task}: {_first_line(state)}"


def merge_healths(healths: Mapping[str, WorkerStatus]) -> WorkerStatus:
    """Return the health of a process with several flows, by the name of each flow.

    While at least one flow runs, the process is at most degraded.
    """
    assert healths, "a process has at least one flow"
    worst = max(healths.values(), key=lambda health: _SEVERITY.index(health.status)).status
    has_ready_flow = any(health.status in (HEALTHY, DEGRADED) for health in healths.values())
    status = DEGRADED if has_ready_flow and worst != HEALTHY else worst
    flow, health = next((flow, one) for flow, one in healths.items() if one.status == worst)
    message = health.message if worst == HEALTHY else f"{flow}: {health.message}"
    return WorkerStatus(status=status, message=message)


def _has_problem(state: StateInfo) -> bool:
    return bool(state.trace) or state.state == LifecycleState.FAILED.value


def _first_line(state: StateInfo) -> str:
    trace = (state.trace or "").strip()
    return trace.splitlines()[0] if trace else state.state


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
