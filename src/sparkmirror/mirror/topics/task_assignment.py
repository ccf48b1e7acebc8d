"""Assigns partitions and groups to tasks, and writes the task configs.

The assignment keeps the order of its input. Connect restarts every task whose config has changed,
so callers use `sorted_unique` first: the same set must always give the same configs.

    partitions, round robin    t0-0 t0-3 | t0-1 t1-0 | t0-2 t1-1
    groups, contiguous         g0 g1 g2  | g3 g4     | g5 g6
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from sparkmirror.errors import ClusterTimeout
from sparkmirror.model import TopicPartition

ASSIGNED_PARTITIONS = "task.assigned.partitions"
ASSIGNED_GROUPS = "task.assigned.groups"
TASK_INDEX = "task.index"

_LIST_SEPARATOR = re.compile(r"\s*,\s*")

Item = TypeVar("Item")
Ordered = TypeVar("Ordered", TopicPartition, str)


def sorted_unique(items: Iterable[Ordered]) -> tuple[Ordered, ...]:
    """Return the items sorted, without duplicates: partitions by topic and number, groups by id."""
    return tuple(sorted(set(items)))


def assign_round_robin(items: Sequence[Item], tasks_max: int) -> tuple[tuple[Item, ...], ...]:
    """Assign items to tasks in turn. There are at most `tasks_max` tasks, and none is empty."""
    tasks = min(tasks_max, len(items))
    return tuple(tuple(items[task::tasks]) for task in range(tasks))


def assign_contiguous(items: Sequence[Item], tasks_max: int) -> tuple[tuple[Item, ...], ...]:
    """Assign contiguous parts to tasks, longer parts first. The number of tasks is the same."""
    tasks = min(tasks_max, len(items))
    parts = []
    start = 0
    for task in range(tasks):
        end = start + len(items) // tasks + (task < len(items) % tasks)
        parts.append(tuple(items[start:end]))
        start = end
    return tuple(parts)


def source_task_configs(
    connector: Mapping[str, str],
    partitions: Sequence[TopicPartition],
    *,
    tasks_max: int,
    enabled: bool = True,
) -> tuple[dict[str, str], ...]:
    """Return the task configs of a source connector; none if disabled or without partitions."""
    assignments = assign_round_robin(partitions, tasks_max) if enabled else ()
    return _task_configs(connector, ASSIGNED_PARTITIONS, assignments)


def checkpoint_task_configs(
    connector: Mapping[str, str],
    groups: Sequence[str] | None,
    *,
    tasks_max: int,
    enabled: bool = True,
    emit_checkpoints: bool = True,
) -> tuple[dict[str, str], ...]:
    """Return the task configs of a checkpoint connector; none if disabled or without groups.

    `groups` is None until they were listed once: then ClusterTimeout is raised, which is retriable.
    """
    if not (enabled and emit_checkpoints):
        return ()
    if groups is None:
        source = connector.get("source.cluster.alias", "source")
        raise ClusterTimeout(source, "Timeout while loading consumer groups.")
    return _task_configs(connector, ASSIGNED_GROUPS, assign_contiguous(groups, tasks_max))


def heartbeat_task_configs(
    connector: Mapping[str, str], *, emit_heartbeats: bool = True
) -> tuple[dict[str, str], ...]:
    """Return the only task config of a heartbeat connector. `enabled` has no effect, as in Java."""
    return (dict(connector),) if emit_heartbeats else ()


def _task_configs(
    connector: Mapping[str, str], key: str, assignments: Sequence[Sequence[object]]
) -> tuple[dict[str, str], ...]:
    return tuple(
        {**connector, key: ",".join(str(item) for item in items), TASK_INDEX: str(index)}
        for index, items in enumerate(assignments)
    )


def assigned_partitions(task: Mapping[str, str]) -> tuple[TopicPartition, ...]:
    """Return the partitions of a source task config. Raises ValueError if one is malformed."""
    return tuple(
        TopicPartition.parse(text) for text in _split_list(task.get(ASSIGNED_PARTITIONS, ""))
    )


def assigned_groups(task: Mapping[str, str]) -> tuple[str, ...]:
    """Return the groups of a checkpoint task config. A group id with a comma is split."""
    return tuple(_split_list(task.get(ASSIGNED_GROUPS, "")))


def _split_list(text: str) -> list[str]:
    stripped = text.strip()
    return _LIST_SEPARATOR.split(stripped) if stripped else []
