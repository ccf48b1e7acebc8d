"""Which slot runs which task: tasks of one job apart, no slot with two tasks more than another."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.engine.driver.slots.slot_assignment import (
    TaskKey,
    choose_slots,
    slots_needed,
    tasks_to_move,
)

KEYS = st.sets(st.builds(TaskKey, st.sampled_from("abcde"), st.integers(0, 5)), max_size=30)
SLOTS = st.integers(1, 5).map(range)


@pytest.mark.parametrize(
    ("tasks", "available", "current", "needed"),
    [
        (0, 4, 0, 1),
        (1, 4, 0, 1),
        (3, 4, 0, 3),
        (9, 4, 0, 4),
        (5, 16, 4, 8),
        (12, 16, 4, 12),
        (1, 4, 3, 3),
        (9, 2, 3, 3),
        (9, 0, 0, 1),
    ],
)
def test_slots_are_as_many_as_tasks_at_most_those_of_spark_and_never_fewer_than_before(
    tasks: int, available: int, current: int, needed: int
) -> None:
    assert slots_needed(tasks, available, current) == needed


def test_tasks_of_one_job_go_to_different_slots() -> None:
    running = {TaskKey("a", 0): 0, TaskKey("b", 0): 1, TaskKey("c", 0): 1}
    chosen = choose_slots([TaskKey("a", 1), TaskKey("d", 0)], running, [0, 1])
    assert chosen == {TaskKey("a", 1): 1, TaskKey("d", 0): 0}


def test_without_slots_no_task_starts() -> None:
    assert choose_slots([TaskKey("a", 0)], {}, []) == {}


@given(KEYS, SLOTS)
def test_every_waiting_task_gets_a_slot_and_the_tasks_of_a_job_are_spread(
    keys: set[TaskKey], slots: range
) -> None:
    chosen = choose_slots(keys, {}, slots)
    assert chosen.keys() == keys
    for job in {key.job for key in keys}:
        counts = Counter(slot for key, slot in chosen.items() if key.job == job)
        assert max(counts.values()) - min(counts[slot] for slot in slots) <= 1


@given(st.dictionaries(st.builds(TaskKey, st.sampled_from("abc"), st.integers(0, 9)), SLOTS))
def test_moves_end_and_leave_no_slot_with_two_tasks_more_than_another(
    placed: dict[TaskKey, range],
) -> None:
    slots = range(5)
    running = {key: len(each) % 5 for key, each in placed.items()}
    for _ in range(20):
        moved = tasks_to_move(running, slots)
        if not moved:
            break
        for key in moved:
            del running[key]
        running |= choose_slots(moved, running, slots)
    counts = Counter(running.values())
    assert max(counts.values(), default=0) - min(counts[slot] for slot in slots) <= 1


def test_few_tasks_move_to_a_slot_that_connects_later() -> None:
    running = {TaskKey("a", number): 0 for number in range(4)}
    moved = tasks_to_move(running, [0, 1])
    assert len(moved) == 2
