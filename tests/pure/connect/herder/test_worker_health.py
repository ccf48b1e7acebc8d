"""The answer of `/health`, from the states of connectors, tasks and flows."""

from __future__ import annotations

import pytest

from sparkmirror.connect.herder import worker_health
from sparkmirror.connect.herder.herder import ConnectorStateInfo, StateInfo, WorkerStatus


def state(name: str, trace: str | None = None) -> StateInfo:
    return StateInfo(state=name, worker_id="w", version=None, trace=trace)


def connector(own: StateInfo, *tasks: StateInfo) -> ConnectorStateInfo:
    return ConnectorStateInfo(name="c", connector=own, tasks=dict(enumerate(tasks)), type="source")


def test_a_worker_without_problems_is_healthy() -> None:
    health = worker_health.ready([connector(state("RUNNING"), state("PAUSED"), state("RUNNING"))])
    assert health.status == "healthy"
    assert health.message == "Worker has completed startup and is ready to handle requests."


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (connector(state("FAILED", "java.lang.X: a\n\tat b")), "connector c: java.lang.X: a"),
        (connector(state("FAILED")), "connector c: FAILED"),
        (connector(state("RUNNING", "no topic matches")), "connector c: no topic matches"),
        (connector(state("RUNNING"), state("RUNNING", "o-0: held")), "task c-0: o-0: held"),
    ],
)
def test_a_problem_of_a_connector_or_task_degrades_the_worker(
    status: ConnectorStateInfo, expected: str
) -> None:
    health = worker_health.ready([status])
    assert health.status == "degraded"
    assert health.message.endswith(f"ready to handle requests. But {expected}")


def test_a_warning_of_the_worker_degrades_it_and_comes_first() -> None:
    health = worker_health.ready([connector(state("FAILED", "x"))], ["a second worker is hidden"])
    assert health.status == "degraded"
    assert health.message.endswith("But a second worker is hidden (and 1 more)")


def test_the_message_counts_further_problems() -> None:
    failed = state("FAILED", "x")
    assert worker_health.ready([connector(failed, failed, failed)]).message.endswith(
        "But connector c: x (and 2 more)"
    )


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (("healthy", "healthy"), "healthy"),
        (("starting", "starting"), "starting"),
        (("unhealthy", "unhealthy"), "unhealthy"),
        (("healthy", "degraded"), "degraded"),
        (("healthy", "starting"), "degraded"),
        (("unhealthy", "healthy"), "degraded"),
        (("starting", "unhealthy"), "unhealthy"),
    ],
)
def test_a_process_with_a_flow_that_runs_is_at_most_degraded(
    statuses: tuple[str, str], expected: str
) -> None:
    a, b = (WorkerStatus(status=status, message=f"is {status}") for status in statuses)
    assert worker_health.merge_healths({"a->b": a, "b->a": b}).status == expected


def test_the_message_begins_with_the_worst_flow_and_names_the_others() -> None:
    healths = {
        "a->b": WorkerStatus(status="degraded", message="task c-0: held"),
        "a->c": WorkerStatus(status="healthy", message="is ready"),
        "b->a": WorkerStatus(status="starting", message="b: connection refused"),
    }
    merged = worker_health.merge_healths(healths)
    assert merged.message == "b->a: b: connection refused (and a->b)"


@pytest.mark.parametrize("enabled", ["healthy", "degraded", "starting", "unhealthy"])
@pytest.mark.parametrize("disabled", ["healthy", "degraded", "starting", "unhealthy"])
def test_a_disabled_flow_does_not_change_the_health_of_the_enabled_ones(
    enabled: str, disabled: str
) -> None:
    healths = {
        "b->a": WorkerStatus(status=disabled, message="waits for its topics on a"),
        "a->b": WorkerStatus(status=enabled, message="a: connection refused"),
    }
    merged = worker_health.merge_healths(healths, disabled=["b->a"])
    assert merged.status == enabled
    first, _, last = merged.message.partition("disabled flow b->a: ")
    assert first.startswith("Worker has" if enabled == "healthy" else "a->b: a: connection refused")
    assert last == ("" if disabled == "healthy" else "waits for its topics on a")


def test_disabled_flows_decide_if_no_flow_is_enabled() -> None:
    healths = {"b->a": WorkerStatus(status="starting", message="a: connection refused")}
    merged = worker_health.merge_healths(healths, disabled=["b->a"])
    assert (merged.status, merged.message) == ("starting", "b->a: a: connection refused")
