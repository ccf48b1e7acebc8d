"""For how much of its time a task was running or paused."""

from __future__ import annotations

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.runtime.status.task_state_times import TaskStateTimes
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState

TASK = ConnectorTaskId(connector="c", task=0)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_shares_are_those_of_the_time_since_the_first_state() -> None:
    clock = Clock()
    times = TaskStateTimes(clock)
    assert times.shares() == {}
    for state, seconds in (
        (LifecycleState.RUNNING, 0.0),
        (LifecycleState.RUNNING, 6.0),
        (LifecycleState.PAUSED, 3.0),
        (LifecycleState.FAILED, 1.0),
    ):
        times.on_state("c", 0, state)
        clock.now_s += seconds
    found = times.shares()[TASK]
    assert (found.running, found.paused) == (0.6, 0.3)


def test_a_task_that_begins_has_its_first_state_alone() -> None:
    times = TaskStateTimes(Clock())
    times.on_state("c", 0, LifecycleState.PAUSED)
    found = times.shares()[TASK]
    assert (found.running, found.paused) == (0.0, 1.0)


def test_a_task_that_ends_has_no_shares_and_its_next_start_begins_with_none() -> None:
    clock = Clock()
    times = TaskStateTimes(clock)
    times.on_state("c", 0, LifecycleState.PAUSED)
    clock.now_s = 5.0
    times.on_state("c", 0, LifecycleState.UNASSIGNED)
    assert times.shares() == {}
    times.on_state("c", 0, LifecycleState.RUNNING)
    clock.now_s = 6.0
    assert times.shares()[TASK].running == 1.0
