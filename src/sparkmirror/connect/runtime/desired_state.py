"""What one connector and its tasks should be on this worker. Pure.

The config topic says what they should be, the share of this worker says which of them it runs.

The connector's thread and the tasks' thread get the same value. Each compares only what concerns
it: `same_connector` and `same_tasks`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from sparkmirror.connect.runtime.own_share import OwnShare
from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState:
    """The target state of one connector and its tasks."""

    properties: ConfigProperties
    """The connector's config."""
    state: TargetState
    tasks: Mapping[int, ConfigProperties]
    """The configs of the tasks that this worker runs, by number. Empty while STOPPED."""
    task_count: int
    """How many tasks the connector has, on all workers together. 0 while STOPPED."""
    generation: int
    """Counts the sets of task configs."""
    runs_connector: bool = True
    """Whether this worker runs the connector itself, too."""
    restart_count: int = 0
    """Another count needs another instance of the connector, even with the same properties."""
    is_restart: bool = False
    """Whether the status topic says RESTARTING before the new instance starts."""

    @classmethod
    def from_config_state(
        cls, configs: ClusterConfigState, name: str, share: OwnShare
    ) -> Self | None:
        """Read one connector. Return None if this worker runs nothing of it, or it is deleted."""
        properties = configs.connector_config(name)
        if properties is None or not share.contains(name):
            return None
        state = configs.target_state(name) or TargetState.STARTED
        tasks = () if state is TargetState.STOPPED else configs.task_configs(name)
        own = share.task_numbers(name)
        return cls(
            properties=properties,
            state=state,
            tasks={number: task for number, task in enumerate(tasks) if number in own},
            task_count=len(tasks),
            generation=configs.task_config_generation(name) or 0,
            runs_connector=share.runs_connector(name),
        )

    def with_tasks_of(self, before: Self | None, own: Collection[int]) -> Self:
        """Return this state with those tasks of an earlier one that this worker still runs."""
        if before is None:
            return replace(self, tasks={})
        return replace(
            self,
            tasks={number: task for number, task in before.tasks.items() if number in own},
            task_count=before.task_count,
            generation=before.generation,
        )

    @property
    def is_paused(self) -> bool:
        """Whether the tasks are paused."""
        return self.state is TargetState.PAUSED

    def same_instance(self, other: Self) -> bool:
        """Return whether one instance of the connector serves both."""
        return (
            self.restart_count == other.restart_count
            and self.properties == other.properties
            and self.runs_connector == other.runs_connector
        )

    def same_connector(self, other: Self | None) -> bool:
        """Return whether both ask the same of the connector."""
        return (
            other is not None
            and self.same_instance(other)
            and self.state is other.state
            and self.is_restart == other.is_restart
        )

    def same_tasks(self, other: Self | None) -> bool:
        """Return whether both ask the same of the tasks."""
        return (
            other is not None
            and self.generation == other.generation
            and self.is_paused == other.is_paused
            and self.tasks == other.tasks
            and self.task_count == other.task_count
            and self.properties == other.properties
        )
