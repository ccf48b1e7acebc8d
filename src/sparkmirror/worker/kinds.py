"""The three connectors that a worker can run, and what runs their tasks."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.connect.connectors.checkpoint import CheckpointConnector
from sparkmirror.connect.connectors.heartbeat import HeartbeatConnector
from sparkmirror.connect.connectors.source import SourceConnector
from sparkmirror.connect.connectors.source_job import job_of
from sparkmirror.connect.connectors.task_groups import checkpoint_tasks, heartbeat_tasks
from sparkmirror.connect.connectors.worker_side import WorkerSide
from sparkmirror.connect.kinds import ConnectorKind, ConnectorKinds
from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.copy.job import Job
from sparkmirror.engine.supervisor import Supervisor
from sparkmirror.worker.sight import FlowSight
from sparkmirror.worker.spark_settings import SparkSettings
from sparkmirror.worker.spark_tasks import SparkTasks


def connector_kinds(
    properties: Mapping[str, str], spark: SparkSettings, sight: FlowSight
) -> ConnectorKinds:
    """The table for a worker with these properties, expanded.

    Whoever watches sees it through `sight`.
    """
    worker = WorkerSide(properties=properties)

    def job(plan: TaskPlan) -> Job:
        return job_of(plan, worker)

    def supervise(wanted: Job) -> Supervisor:
        return Supervisor(spark.assignment(wanted))

    def spark_tasks(connector: str, listener: TaskListener) -> SparkTasks:
        return SparkTasks(connector, listener, job, supervise, sight.saw)

    return {
        SOURCE_CONNECTOR: ConnectorKind(connector=SourceConnector, task_group=spark_tasks),
        CHECKPOINT_CONNECTOR: ConnectorKind(
            connector=CheckpointConnector, task_group=checkpoint_tasks(worker, sight.explanations)
        ),
        HEARTBEAT_CONNECTOR: ConnectorKind(
            connector=HeartbeatConnector, task_group=heartbeat_tasks(worker)
        ),
    }
