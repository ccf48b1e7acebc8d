"""Who copies what: partitions and groups dealt to tasks, and the task configs that say so.

Dealing keeps the order it is given. Connect restarts every task whose config has changed by a
character, so callers put partitions and groups `in_order` first: the same set must always give the
same texts.

    partitions, one by one in turn     t0-0 t0-3 | t0-1 t1-0 | t0-2 t1-1
    groups, in runs                    g0 g1 g2  | g3 g4     | g5 g6
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
    """Sort, each once: partitions by topic and number, groups by id."""
    return tuple(sorted(set(items)))


def assign_round_robin(items: Sequence[Item], tasks_max: int) -> tuple[tuple[Item, ...], ...]:
    """Deal in turn to as many tasks as there is work for, and no more than `tasks_max`."""
    tasks = min(tasks_max, len(items))
    return tuple(tuple(items[task::tasks]) for task in range(tasks))


def assign_contiguous(items: Sequence[Item], tasks_max: int) -> tuple[tuple[Item, ...], ...]:
    """Cut into runs, the longer ones first, under the same limits as `deal`."""
    tasks = min(tasks_max, len(items))
    runs = []
    start = 0
    for task in range(tasks):
        end = start + len(items) // tasks + (task < len(items) % tasks)
        runs.append(tuple(items[start:end]))
        start = end
    return tuple(runs)


def source_task_configs(
    connector: Mapping[str, str],
    partitions: Sequence[TopicPartition],
    *,
    tasks_max: int,
    enabled: bool = True,
) -> tuple[dict[str, str], ...]:
    """Write the source connector's task configs; none if it is disabled or has nothing to copy."""
    hands = assign_round_robin(partitions, tasks_max) if enabled else ()
    return _task_configs(connector, ASSIGNED_PARTITIONS, hands)


def checkpoint_task_configs(
    connector: Mapping[str, str],
    groups: Sequence[str] | None,
    *,
    tasks_max: int,
    enabled: bool = True,
    emit_checkpoints: bool = True,
) -> tuple[dict[str, str], ...]:
    """Write the checkpoint connector's task configs; none if there is nothing to do.

    `groups` is None as long as they have never been listed: then an answer cannot be given yet,
    and ClusterTimeout is raised, which is worth another try.
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
    """Write the heartbeat connector's only task config. It does not ask whether it is enabled."""
    return (dict(connector),) if emit_heartbeats else ()


def _task_configs(
    connector: Mapping[str, str], assigned: str, hands: Sequence[Sequence[object]]
) -> tuple[dict[str, str], ...]:
    return tuple(
        {**connector, assigned: ",".join(str(item) for item in hand), TASK_INDEX: str(index)}
        for index, hand in enumerate(hands)
    )


def assigned_partitions(task: Mapping[str, str]) -> tuple[TopicPartition, ...]:
    """Read back what a source task was given. Raises ValueError for what is no partition."""
    return tuple(
        TopicPartition.parse(text) for text in _split_list(task.get(ASSIGNED_PARTITIONS, ""))
    )


def assigned_groups(task: Mapping[str, str]) -> tuple[str, ...]:
    """Read back what a checkpoint task was given. A group id with a comma in it falls apart."""
    return tuple(_split_list(task.get(ASSIGNED_GROUPS, "")))


def _split_list(text: str) -> list[str]:
    stripped = text.strip()
    return _LIST_SEPARATOR.split(stripped) if stripped else []
