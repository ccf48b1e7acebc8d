"""What this worker runs by the last assignment of its group. Pure."""

from __future__ import annotations

from collections import defaultdict

from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState

NO_TASKS: frozenset[int] = frozenset()


class OwnShare:
    """The share of this worker, by connector. Without an assignment it is empty."""

    def __init__(self, assignment: Assignment | None = None) -> None:
        self.is_leader = assignment is not None and assignment.is_leader
        self.config_offset = assignment.config_offset if assignment else -1
        self._task_counts = assignment.task_counts if assignment else {}
        share = assignment.own_share if assignment else None
        self._connectors = share.connectors if share else frozenset()
        tasks: defaultdict[str, set[int]] = defaultdict(set)
        for task in share.tasks if share else ():
            tasks[task.connector].add(task.task)
        self._tasks = {name: frozenset(numbers) for name, numbers in tasks.items()}

    def contains(self, name: str) -> bool:
        """Return whether this worker runs a connector or a task of it."""
        return name in self._connectors or name in self._tasks

    def runs_connector(self, name: str) -> bool:
        """Return whether this worker runs a connector."""
        return name in self._connectors

    def task_numbers(self, name: str) -> frozenset[int]:
        """Return the numbers of a connector's tasks that this worker runs."""
        return self._tasks.get(name, NO_TASKS)

    def has(self, name: str, task: int | None) -> bool:
        """Return whether this worker runs a task, or without one the connector."""
        return name in self._connectors if task is None else task in self.task_numbers(name)

    def names(self) -> frozenset[str]:
        """Return the connectors that this worker runs something of."""
        return frozenset(self._connectors) | frozenset(self._tasks)

    def covers_tasks(self, configs: ClusterConfigState, name: str) -> bool:
        """Return whether the group has divided the tasks that a connector has now."""
        return self._task_counts.get(name, 0) == len(configs.task_configs(name))

    def covers_all(self, configs: ClusterConfigState) -> bool:
        """Return whether the group has divided all connectors and tasks of the config topic."""
        return dict(self._task_counts) == task_counts(configs)


def task_counts(configs: ClusterConfigState) -> dict[str, int]:
    """Return how many tasks each connector has."""
    return {name: len(configs.task_configs(name)) for name in configs.connectors()}
