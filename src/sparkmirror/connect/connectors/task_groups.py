"""How the tasks of checkpoint and heartbeat connectors are made: as threads of the worker.

Those of source connectors copy, and are run by Spark; `source_job` says what they copy.
"""

from __future__ import annotations

from sparkmirror.connect.connectors.checkpoint_task import CheckpointWork
from sparkmirror.connect.connectors.explanations import Explanations
from sparkmirror.connect.connectors.heartbeat import HeartbeatWork
from sparkmirror.connect.connectors.thread_tasks import ThreadTasks
from sparkmirror.connect.connectors.worker_side import WorkerSide
from sparkmirror.connect.kinds import TaskGroupFactory
from sparkmirror.connect.task_group import TaskGroup, TaskListener


def checkpoint_tasks(worker: WorkerSide, explanations: Explanations) -> TaskGroupFactory:
    """Make groups of checkpoint tasks, which say in `explanations` what became of offsets."""

    def make(connector: str, listener: TaskListener) -> TaskGroup:
        return ThreadTasks(
            connector, listener, lambda config: CheckpointWork(config, worker, explanations)
        )

    return make


def heartbeat_tasks(worker: WorkerSide) -> TaskGroupFactory:
    """Make groups of heartbeat tasks."""

    def make(connector: str, listener: TaskListener) -> TaskGroup:
        return ThreadTasks(connector, listener, lambda config: HeartbeatWork(config, worker))

    return make
