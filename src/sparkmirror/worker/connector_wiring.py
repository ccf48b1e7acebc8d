"""The three connectors that a worker can run, and what runs their tasks."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.connect.connectors.checkpoint.checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.connectors.heartbeat.heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.connect.connectors.shared.worker_clients import WorkerClientConfig
from sparkmirror.connect.connectors.source.source_connector import MirrorSourceConnector
from sparkmirror.connect.connectors.source.source_job import build_job
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry, RegisteredConnector
from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.worker.monitoring import FlowMonitor
from sparkmirror.worker.spark_settings import SparkSettings
from sparkmirror.worker.spark_task_group import SparkTaskGroup
from sparkmirror.worker.task_group_factories import checkpoint_task_groups, heartbeat_task_groups


def build_connector_registry(
    properties: Mapping[str, str], spark: SparkSettings, sight: FlowMonitor
) -> ConnectorRegistry:
    """The table for a worker with these properties, expanded.

    Whoever watches sees it through `sight`.
    """
    worker = WorkerClientConfig(properties=properties)

    def job(plan: TaskPlan) -> CopyJob:
        return build_job(plan, worker)

    def supervise(wanted: CopyJob) -> DriverSupervisor:
        return DriverSupervisor(spark.driver_spec(wanted))

    def spark_tasks(connector: str, listener: TaskListener) -> SparkTaskGroup:
        return SparkTaskGroup(connector, listener, job, supervise, sight.on_snapshot)

    return {
        SOURCE_CONNECTOR: RegisteredConnector(
            connector=MirrorSourceConnector, task_group=spark_tasks
        ),
        CHECKPOINT_CONNECTOR: RegisteredConnector(
            connector=MirrorCheckpointConnector,
            task_group=checkpoint_task_groups(worker, sight.group_reports),
        ),
        HEARTBEAT_CONNECTOR: RegisteredConnector(
            connector=MirrorHeartbeatConnector, task_group=heartbeat_task_groups(worker)
        ),
    }
