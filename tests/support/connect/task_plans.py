"""The task plan of a worker that runs all tasks of a connector."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.connect.connector import ExpandedConfig
from sparkmirror.connect.task_group import TaskPlan


def plan_of_all_tasks(
    config: ExpandedConfig, tasks: Sequence[ExpandedConfig], connector: str = ""
) -> TaskPlan:
    """Return the plan of the first set of task configs. The config has the name by default."""
    return TaskPlan(
        connector=connector or config["name"],
        config=config,
        tasks=dict(enumerate(tasks)),
        task_count=len(tasks),
        generation=1,
    )
