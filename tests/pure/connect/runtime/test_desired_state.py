"""One desired state, two comparisons: what concerns the connector, and what concerns its tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.connect.runtime.desired_state import DesiredState
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from tests.support.connect.in_memory_stores import MemoryLog, memory_config_store

STATE = DesiredState(
    properties={"name": "c"}, state=TargetState.STARTED, tasks=({"task": "0"},), generation=1
)


@pytest.mark.parametrize(
    ("other", "instance", "connector", "tasks"),
    [
        (STATE, True, True, True),
        (replace(STATE, properties={"name": "c", "x": "1"}), False, False, False),
        (replace(STATE, restart_count=1), False, False, True),
        (replace(STATE, restart_count=1, is_restart=True), False, False, True),
        (replace(STATE, state=TargetState.PAUSED), True, False, False),
        (replace(STATE, state=TargetState.STOPPED, tasks=()), True, False, False),
        (replace(STATE, tasks=({"task": "1"},), generation=2), True, True, False),
        (replace(STATE, generation=2), True, True, False),
    ],
    ids=["same", "config", "restart", "restarting", "paused", "stopped", "tasks", "generation"],
)
def test_each_thread_compares_only_what_concerns_it(
    other: DesiredState, *, instance: bool, connector: bool, tasks: bool
) -> None:
    assert other.same_instance(STATE) is instance
    assert other.same_connector(STATE) is connector
    assert other.same_tasks(STATE) is tasks


def test_the_first_state_differs_from_none() -> None:
    assert not STATE.same_connector(None)
    assert not STATE.same_tasks(None)


def test_a_connector_without_tasks_has_the_same_tasks_when_it_stops() -> None:
    empty = replace(STATE, tasks=())
    assert replace(empty, state=TargetState.STOPPED).same_tasks(empty)


def test_a_stopped_connector_has_no_tasks_whatever_the_config_topic_holds() -> None:
    configs = memory_config_store(MemoryLog())
    configs.start(lambda _: None)
    assert DesiredState.from_config_state(configs.snapshot(), "c") is None
    configs.put_connector_config("c", {"name": "c"})
    configs.put_task_configs("c", [{"task": "0"}])
    started = DesiredState.from_config_state(configs.snapshot(), "c")
    assert started is not None
    assert (started.state, len(started.tasks)) == (TargetState.STARTED, 1)
    configs.put_target_state("c", TargetState.STOPPED)
    stopped = DesiredState.from_config_state(configs.snapshot(), "c")
    assert stopped == replace(started, state=TargetState.STOPPED, tasks=())
