"""What a worker runs its connectors and tasks with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkmirror.connect.runtime.config_transformer import ConfigTransformer
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry
from sparkmirror.connect.runtime.threads.herder_thread import HerderThread
from sparkmirror.mirror.connect_topics.connect_configs import TargetState

TasksEndedListener = Callable[[str, TargetState | None], None]
"""Gets a connector that has no tasks on this worker, and its target state; None: it was deleted.

Called again when the target state changes, and for connectors that this worker never had."""

WorkerValuesReader = Callable[[], Mapping[str, str]]
"""Returns the values of now, by key, that config providers have for the worker's own file and that
tasks use. May block."""


def ignore_ended_tasks(name: str, state: TargetState | None) -> None:
    """Do nothing."""
    del name, state


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The same for all connectors of one worker."""

    registry: ConnectorRegistry
    transformer: ConfigTransformer
    herder_thread: HerderThread
    stop_timeout_s: float
    """How long a connector or its tasks may take to stop."""
    fence_zombies: Callable[[str], None] | None = None
    """Fences producers of a connector's older tasks; None without exactly-once support."""
    on_tasks_ended: TasksEndedListener = ignore_ended_tasks
    read_worker_values: WorkerValuesReader | None = None
