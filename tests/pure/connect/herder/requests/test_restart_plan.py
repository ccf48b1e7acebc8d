"""What a restart request restarts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.connect.herder.herder import ConnectorStateInfo, StateInfo
from sparkmirror.connect.herder.requests.restart_plan import plan_restart
from sparkmirror.mirror.connect_topics.connect_configs import RestartRequest

STATES = st.sampled_from(["RUNNING", "PAUSED", "STOPPED", "FAILED", "UNASSIGNED"])


def info(state: str) -> StateInfo:
    return StateInfo(state=state, worker_id="w", version="4.3.0", trace="why" * (state == "FAILED"))


def status(connector: str, tasks: list[str]) -> ConnectorStateInfo:
    states = {number: info(state) for number, state in enumerate(tasks)}
    return ConnectorStateInfo(name="c", connector=info(connector), tasks=states, type="source")


def request(*, include_tasks: bool, only_failed: bool) -> RestartRequest:
    return RestartRequest(connector="c", include_tasks=include_tasks, only_failed=only_failed)


def test_a_restart_without_tasks() -> None:
    plan = plan_restart(
        request(include_tasks=False, only_failed=False), status("FAILED", ["FAILED"])
    )
    assert plan.connector
    assert plan.tasks == ()
    assert plan.status.connector == StateInfo(
        state="RESTARTING", worker_id="w", version="4.3.0", trace="why"
    )
    assert plan.status.tasks[0].state == "FAILED"


@settings(max_examples=40)
@given(connector=STATES, tasks=st.lists(STATES, max_size=4), include=st.booleans())
def test_a_restart_of_what_failed(connector: str, tasks: list[str], *, include: bool) -> None:
    before = status(connector, tasks)
    plan = plan_restart(request(include_tasks=include, only_failed=True), before)
    failed = [number for number, state in enumerate(tasks) if state == "FAILED"]
    assert plan.connector == (connector == "FAILED")
    assert list(plan.tasks) == (failed if include else [])
    for number, task in plan.status.tasks.items():
        assert (task.state == "RESTARTING") == (number in plan.tasks)


@settings(max_examples=20)
@given(connector=STATES, tasks=st.lists(STATES, max_size=4))
def test_a_restart_of_everything(connector: str, tasks: list[str]) -> None:
    plan = plan_restart(request(include_tasks=True, only_failed=False), status(connector, tasks))
    assert plan.connector
    assert plan.tasks == tuple(range(len(tasks)))
