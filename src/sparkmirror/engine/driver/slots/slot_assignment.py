"""Decides how many slots an epoch has and which slot runs which task. Pure.

A slot is a Python process with one interpreter lock: busy tasks in one slot share one core. So the
tasks of one connector go to different slots where there are several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar

Slot = TypeVar("Slot")


class TaskKey(NamedTuple):
    """A task of a connector: the name of its job and its number."""

    job: str
    task: int


def slots_needed(tasks: int, available: int, current: int) -> int:
    """Return how many slots an epoch needs: at most the available ones, at least one.

    Never fewer than now, because idle slots cost little. More slots need another epoch, after which
    tasks move, and where slots are not kept every task pauses. So their number at least doubles.
    """
    if tasks <= current:
        return max(current, 1)
    return max(min(available, max(tasks, 2 * current)), current, 1)


def choose_slots(
    waiting: Iterable[TaskKey], running: Mapping[TaskKey, Slot], slots: Collection[Slot]
) -> dict[TaskKey, Slot]:
    """Return a slot for each waiting task; nothing without slots.

    It is the slot with the fewest tasks of the same job; of several, the one with the fewest tasks.
    """
    chosen: dict[TaskKey, Slot] = {}
    if not slots:
        return chosen
    total = Counter(running.values())
    of_job = Counter((key.job, slot) for key, slot in running.items())
    for key in sorted(waiting):
        job = key.job
        slot = min(slots, key=lambda one: (of_job[job, one], total[one]))
        chosen[key] = slot
        total[slot] += 1
        of_job[job, slot] += 1
    return chosen


def tasks_to_move(running: Mapping[TaskKey, Slot], slots: Collection[Slot]) -> set[TaskKey]:
    """Return the tasks that must leave their slots, so that no slot has two more than another.

    A task that stays is not interrupted.
    """
    by_slot: dict[Slot, list[TaskKey]] = {slot: [] for slot in slots}
    for key, slot in sorted(running.items(), key=lambda run: run[0]):
        if slot in by_slot:
            by_slot[slot].append(key)
    moved: set[TaskKey] = set()
    while by_slot:
        fullest = max(by_slot.values(), key=len)
        emptiest = min(by_slot.values(), key=len)
        if len(fullest) - len(emptiest) < 2:
            break
        key = _task_to_move(fullest, emptiest)
        fullest.remove(key)
        emptiest.append(key)
        moved.add(key)
    return moved


def _task_to_move(fullest: list[TaskKey], emptiest: list[TaskKey]) -> TaskKey:
    """Return the last task of the job that has the most tasks more than in the other slot.

    Such a task does not come back: `choose_slots` prefers the other slot, too.
    """
    excess = Counter(key.job for key in fullest)
    excess.subtract(key.job for key in emptiest)
    return max(fullest, key=lambda key: (excess[key.job], key))
