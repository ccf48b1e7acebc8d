"""The answer of `/health`: decided from what the worker knows already. Pure.

starting    the stores are not read yet, or connectors of the file are not configured yet; the
            message says what the worker waits for
unhealthy   the worker cannot read or write its topics, or its herder thread hangs
degraded    the worker answers requests, but it would not notice a second worker, or a connector or
            task has a problem
healthy     nothing of this
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

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


def ready(statuses: Iterable[ConnectorStateInfo], warnings: Iterable[str] = ()) -> WorkerStatus:
    """The worker handles requests; it may have warnings, its connectors and tasks problems."""
    of_connectors = (text for status in statuses for text in connector_problems(status))
    problems = [*filter(None, warnings), *of_connectors]
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


def merge_healths(
    healths: Mapping[str, WorkerStatus], disabled: Collection[str] = ()
) -> WorkerStatus:
    """Return the health of a process with several flows, by the name of each flow.

    The enabled flows decide the status; if all are disabled, all of them do. While at least one of
    them runs, the process is at most degraded. The message begins with the worst of them. The flows
    in `disabled` come last: they have a heartbeat connector at most.
    """
    assert healths, "a process has at least one flow"
    deciding = {flow: one for flow, one in healths.items() if flow not in disabled} or healths
    others = {flow: one for flow, one in healths.items() if flow not in deciding}
    worst = max(map(_severity, deciding.values()))
    has_ready_flow = min(map(_severity, deciding.values())) <= _SEVERITY.index(DEGRADED)
    status = DEGRADED if has_ready_flow and worst else _SEVERITY[worst]
    texts = [*_flow_problems(deciding), *_flow_problems(others, "disabled flow ")]
    if not worst:
        texts = [_READY, *texts]
    return WorkerStatus(status=status, message=_join(*texts))


def _flow_problems(healths: Mapping[str, WorkerStatus], prefix: str = "") -> Iterator[str]:
    """Yield the message of the worst flow, then the names of the others that have a problem."""
    flows = sorted(healths, key=lambda flow: _severity(healths[flow]), reverse=True)
    troubled = [flow for flow in flows if healths[flow].status != HEALTHY]
    if troubled:
        yield f"{prefix}{troubled[0]}: {healths[troubled[0]].message}"
    if len(troubled) > 1:
        yield f"(and {prefix}{', '.join(troubled[1:])})"


def _severity(health: WorkerStatus) -> int:
    return _SEVERITY.index(health.status)


def _has_problem(state: StateInfo) -> bool:
    return bool(state.trace) or state.state == LifecycleState.FAILED.value


def _first_line(state: StateInfo) -> str:
    trace = (state.trace or "").strip()
    return trace.splitlines()[0] if trace else state.state


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
