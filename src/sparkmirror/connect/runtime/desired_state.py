"""What one connector and its tasks should be, as the config topic says. Pure.

The connector's thread and the tasks' thread get the same value. Each compares only what concerns
it: `same_connector` and `same_tasks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState:
    """The target state of one connector and its tasks."""

    properties: ConfigProperties
    """The connector's config."""
    state: TargetState
    tasks: tuple[ConfigProperties, ...]
    """One config per task. Empty while the connector is STOPPED."""
    generation: int
    """Counts the sets of task configs."""
    restart_count: int = 0
    """Another count needs another instance of the connector, even with the same properties."""
    is_restart: bool = False
    """Whether the status topic says RESTARTING before the new instance starts."""

    @classmethod
    def from_config_state(cls, configs: ClusterConfigState, name: str) -> Self | None:
        """Read one connector; return None if the config topic has no such connector."""
        properties = configs.connector_config(name)
        if properties is None:
            return None
        state = configs.target_state(name) or TargetState.STARTED
        return cls(
            properties=properties,
            state=state,
            tasks=() if state is TargetState.STOPPED else configs.task_configs(name),
            generation=configs.task_config_generation(name) or 0,
        )

    @property
    def is_paused(self) -> bool:
        """Whether the tasks are paused."""
        return self.state is TargetState.PAUSED

    def same_instance(self, other: Self) -> bool:
        """Return whether one instance of the connector serves both."""
        return self.restart_count == other.restart_count and self.properties == other.properties

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
            and self.properties == other.properties
        )
