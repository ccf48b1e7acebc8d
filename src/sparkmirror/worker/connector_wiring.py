"""The three connectors of a worker, and what runs their tasks.

Tasks of a source connector run on Spark. Tasks of checkpoint and heartbeat connectors are threads
of the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.connect.connectors.checkpoint.checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.connectors.checkpoint.checkpoint_task import MirrorCheckpointTask
from sparkmirror.connect.connectors.checkpoint.group_report import GroupReports
from sparkmirror.connect.connectors.heartbeat.heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.connect.connectors.heartbeat.heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.connectors.shared.source_task_stats import HerderTaskStats
from sparkmirror.connect.connectors.shared.thread_tasks import ThreadTaskGroup
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.connect.connectors.source.copy_job_builder import build_job
from sparkmirror.connect.connectors.source.source_connector import MirrorSourceConnector
from sparkmirror.connect.herder.log_levels import LogLevels
from sparkmirror.connect.runtime.connector_registry import (
    ConnectorRegistry,
    RegisteredConnector,
    TaskGroupFactory,
)
from sparkmirror.connect.task_group import TaskGroup, TaskListener, TaskPlan
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.supervisor.idle_driver import IdleDriver
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.worker.connector_progress import FlowMonitor
from sparkmirror.worker.group.membership_expiry import Membership
from sparkmirror.worker.group.membership_renewals import MembershipRenewals
from sparkmirror.worker.group.undivided_connectors import undivided_rule
from sparkmirror.worker.spark.driver_log_levels import DriverLogLevels
from sparkmirror.worker.spark.spark_applications import SparkApplications
from sparkmirror.worker.spark.spark_settings import MASTER, SparkSettings
from sparkmirror.worker.spark.spark_task_group import SparkTaskGroup
from sparkmirror.worker.spark.spark_task_preparation import SparkTaskPreparation


def build_connector_registry(
    properties: Mapping[str, str],
    applications: SparkApplications,
    monitor: FlowMonitor,
    get_membership: Callable[[], Membership],
) -> ConnectorRegistry:
    """The registry of a worker with these expanded properties.

    Source connectors run in `applications`. Connectors report their progress to `monitor`.
    """
    worker = WorkerClientConfig(properties=properties)
    renewals = MembershipRenewals(get_membership)

    def to_job(plan: TaskPlan) -> CopyJob:
        return build_job(plan, worker)

    def create_spark_tasks(connector: str, listener: TaskListener) -> SparkTaskGroup:
        return SparkTaskGroup(
            connector, listener, to_job, applications.start_job, monitor, renewals
        )

    return {
        SOURCE_CONNECTOR: RegisteredConnector(
            connector=partial(
                MirrorSourceConnector,
                partition_counts=monitor.partition_counts,
                planning_listener=applications,
            ),
            task_group=create_spark_tasks,
            preparation=SparkTaskPreparation(
                to_job, applications, undivided_rule(properties.get(MASTER, ""))
            ),
        ),
        CHECKPOINT_CONNECTOR: RegisteredConnector(
            connector=partial(MirrorCheckpointConnector, reports=monitor.group_reports),
            task_group=checkpoint_task_groups(worker, monitor.group_reports, monitor.task_stats),
        ),
        HEARTBEAT_CONNECTOR: RegisteredConnector(
            connector=MirrorHeartbeatConnector,
            task_group=heartbeat_task_groups(worker, monitor.task_stats),
        ),
    }


def spark_applications(
    settings: SparkSettings, log_levels: LogLevels, idle_driver: IdleDriver | None = None
) -> SparkApplications:
    """The Spark applications of a worker. Their drivers follow changes of `log_levels`."""
    driver_log_levels = DriverLogLevels()
    log_levels.add_listener(driver_log_levels.set_levels)
    return SparkApplications(settings, driver_log_levels, idle_driver=idle_driver)


def checkpoint_task_groups(
    worker: WorkerClientConfig, reports: GroupReports, task_stats: HerderTaskStats | None = None
) -> TaskGroupFactory:
    """Create groups of checkpoint tasks, which write to `reports` what became of each offset."""

    def create(connector: str, listener: TaskListener) -> TaskGroup:
        return ThreadTaskGroup(
            connector,
            listener,
            lambda config: MirrorCheckpointTask(config, worker, reports, task_stats),
        )

    return create


def heartbeat_task_groups(
    worker: WorkerClientConfig, task_stats: HerderTaskStats | None = None
) -> TaskGroupFactory:
    """Create groups of heartbeat tasks."""

    def create(connector: str, listener: TaskListener) -> TaskGroup:
        return ThreadTaskGroup(
            connector, listener, lambda config: MirrorHeartbeatTask(config, worker, task_stats)
        )

    return create


def fence_producers(access: ClusterAccess, transactional_ids: Sequence[str]) -> None:
    """Fence older producers by taking over their transactional ids.

    Blocks until none of them can commit any more. Raises ClusterError.
    """
    router = access.new_router("sparkmirror-fence")
    try:
        for transactional_id in transactional_ids:
            init_producer_id(router, transactional_id=transactional_id)
    finally:
        router.close()
