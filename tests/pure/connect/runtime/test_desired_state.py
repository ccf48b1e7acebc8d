"""One desired state, two comparisons: what concerns the connector, and what concerns its tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.runtime.desired_state import DesiredState
from sparkmirror.connect.runtime.own_share import OwnShare
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from tests.support.connect.in_memory_stores import MemoryLog, memory_config_store


def share_of(connector: str, tasks: list[int], of: str = "") -> OwnShare:
    """The share of a worker with one connector and tasks of it, or of another connector."""
    share = MemberShare(
        worker_id="w1",
        url="",
        connectors=frozenset({connector}),
        tasks=frozenset(ConnectorTaskId(connector=of or connector, task=task) for task in tasks),
    )
    return OwnShare(
        Assignment(
            generation=1, member_id="m1", leader_id="m1", config_offset=0, shares={"m1": share}
        )
    )


STATE = DesiredState(
    properties={"name": "c"},
    state=TargetState.STARTED,
    tasks={0: {"task": "0"}},
    task_count=1,
    generation=1,
)


@pytest.mark.parametrize(
    ("other", "instance", "connector", "tasks"),
    [
        (STATE, True, True, True),
        (replace(STATE, properties={"name": "c", "x": "1"}), False, False, False),
        (replace(STATE, restart_count=1), False, False, True),
        (replace(STATE, restart_count=1, is_restart=True), False, False, True),
        (replace(STATE, state=TargetState.PAUSED), True, False, False),
        (replace(STATE, state=TargetState.STOPPED, tasks={}), True, False, False),
        (replace(STATE, tasks={0: {"task": "1"}}, generation=2), True, True, False),
        (replace(STATE, generation=2), True, True, False),
        (replace(STATE, tasks={1: {"task": "0"}}, task_count=2), True, True, False),
        (replace(STATE, task_count=2), True, True, False),
        (replace(STATE, runs_connector=False), False, False, True),
    ],
    ids=[
        *("same", "config", "restart", "restarting", "paused", "stopped", "tasks", "generation"),
        *("share", "count", "connector elsewhere"),
    ],
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
    empty = replace(STATE, tasks={})
    assert replace(empty, state=TargetState.STOPPED).same_tasks(empty)


def test_a_stopped_connector_has_no_tasks_whatever_the_config_topic_holds() -> None:
    configs = memory_config_store(MemoryLog())
    configs.start(lambda _: None)
    share = share_of("c", tasks=[0])
    assert DesiredState.from_config_state(configs.snapshot(), "c", share) is None
    configs.put_connector_config("c", {"name": "c"})
    configs.put_task_configs("c", [{"task": "0"}])
    started = DesiredState.from_config_state(configs.snapshot(), "c", share)
    assert started is not None
    assert (started.state, len(started.tasks)) == (TargetState.STARTED, 1)
    configs.put_target_state("c", TargetState.STOPPED)
    stopped = DesiredState.from_config_state(configs.snapshot(), "c", share)
    assert stopped == replace(started, state=TargetState.STOPPED, tasks={}, task_count=0)


def test_a_worker_runs_its_own_tasks_and_knows_the_number_of_all() -> None:
    configs = memory_config_store(MemoryLog())
    configs.start(lambda _: None)
    configs.put_connector_config("c", {"name": "c"})
    configs.put_task_configs("c", [{"task": str(number)} for number in range(3)])
    own = DesiredState.from_config_state(
        configs.snapshot(), "c", share_of("other", tasks=[1], of="c")
    )
    assert own is not None
    assert (own.tasks, own.task_count, own.runs_connector) == ({1: {"task": "1"}}, 3, False)
    nothing = share_of("other", tasks=[])
    assert DesiredState.from_config_state(configs.snapshot(), "c", nothing) is None


def test_until_the_group_has_divided_the_tasks_a_worker_keeps_those_it_has_and_owns() -> None:
    before = replace(STATE, tasks={0: {"task": "0"}, 1: {"task": "1"}}, task_count=2)
    later = replace(STATE, tasks={2: {"task": "2"}}, task_count=3, generation=2)
    assert later.with_tasks_of(before, {1, 2}) == replace(before, tasks={1: {"task": "1"}})
    assert later.with_tasks_of(None, {1, 2}).tasks == {}
