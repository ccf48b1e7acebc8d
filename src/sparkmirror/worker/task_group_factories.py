"""How the tasks of checkpoint and heartbeat connectors are made: as threads of the worker.

Those of source connectors copy, and are run by Spark; `source_job` says what they copy.
"""

from __future__ import annotations

from sparkmirror.connect.connectors.checkpoint.checkpoint_task import MirrorCheckpointTask
from sparkmirror.connect.connectors.checkpoint.group_report import GroupReports
from sparkmirror.connect.connectors.heartbeat.heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.connectors.shared.thread_tasks import ThreadTaskGroup
from sparkmirror.connect.connectors.shared.worker_clients import WorkerClientConfig
from sparkmirror.connect.runtime.connector_registry import TaskGroupFactory
from sparkmirror.connect.task_group import TaskGroup, TaskListener


def checkpoint_task_groups(
    worker: WorkerClientConfig, explanations: GroupReports
) -> TaskGroupFactory:
    """Make groups of checkpoint tasks, which say in `explanations` what became of offsets."""

    def make(connector: str, listener: TaskListener) -> TaskGroup:
        return ThreadTaskGroup(
            connector, listener, lambda config: MirrorCheckpointTask(config, worker, explanations)
        )

    return make


def heartbeat_task_groups(worker: WorkerClientConfig) -> TaskGroupFactory:
    """Make groups of heartbeat tasks."""

    def make(connector: str, listener: TaskListener) -> TaskGroup:
        return ThreadTaskGroup(
            connector, listener, lambda config: MirrorHeartbeatTask(config, worker)
        )

    return make
