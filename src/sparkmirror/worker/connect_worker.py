"""A Connect worker in one process: herder, REST server, and Spark's driver process.

REST answers at once, while the herder still reads Connect's topics. The driver process starts Spark
when the first source connector has tasks. At the end the worker closes REST, drains all tasks,
writes their last statuses, and closes the stores.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.files.worker_file import WorkerFile
from sparkmirror.config.plugin_module_allowlist import PluginModuleAllowlist
from sparkmirror.connect.connectors.shared.worker_client_config import changing_client_values
from sparkmirror.connect.connectors.source.dead_letter_topics import transformation_faults
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.internal_requests.session_keys import SessionKeys
from sparkmirror.directories import state_directory
from sparkmirror.engine.supervisor.query_check import QueryCheck
from sparkmirror.rest.client.inter_worker_requests import InterWorkerRequests
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.settings import advertised_url, rest_settings
from sparkmirror.rest.worker_group_access import WorkerGroupAccess
from sparkmirror.security.reloaded_properties import ReloadedProperties
from sparkmirror.store.backing_stores import kafka_backing_stores
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.connector_wiring import (
    build_connector_registry,
    fence_producers,
    spark_applications,
)
from sparkmirror.worker.event_hubs_notice import log_event_hubs_values
from sparkmirror.worker.group.group_settings import WorkerGroupSettings
from sparkmirror.worker.group.membership_expiry import membership_of
from sparkmirror.worker.group.spark_prestart import SparkPrestart, count_divided_tasks
from sparkmirror.worker.group.undivided_connectors import undivided_rule
from sparkmirror.worker.group.worker_coordinator import WorkerCoordinator
from sparkmirror.worker.initial_log_levels import create_log_levels
from sparkmirror.worker.metrics.metric_reporters_notice import log_reporters_notice
from sparkmirror.worker.metrics.metrics_settings import ExposureSettings, MetricsSettings
from sparkmirror.worker.metrics.worker_metrics import MeasuredHerder, WorkerMetrics
from sparkmirror.worker.persistent_client_id import PersistentClientId
from sparkmirror.worker.server_info import WorkerInfoProvider
from sparkmirror.worker.shutdown_signal import ShutdownSignal
from sparkmirror.worker.spark.spark_settings import SparkSettings

log = logging.getLogger(__name__)

HEALTH_CHECK_INTERVAL_S = 0.5
REST_STOP_TIMEOUT_S = 1.0
EXIT_HERDER_DIED = 1
"""The exit code when the herder dies, as in Connect."""


class ConnectWorker:
    """One worker. The main thread calls `run`."""

    def __init__(self, file: WorkerFile, environment: Mapping[str, str]) -> None:
        """Create all parts; connects to no cluster yet. Raises ConfigError with all faults."""
        began = time.monotonic()
        config, properties = file.config(), dict(file.expand().values)
        log_reporters_notice(properties)
        rest = rest_settings(config, properties, environment).with_ports()
        spark = SparkSettings.from_properties(
            properties, properties["group.id"], state_directory(environment)
        )
        log_levels = create_log_levels(environment)
        self._applications = spark_applications(spark, log_levels)
        reloaded = ReloadedProperties(lambda: file.expand().values)
        access = ClusterAccess.reloading("the worker's cluster", reloaded.latest)
        log_event_hubs_values(access.cluster, properties)
        self._worker_info = WorkerInfoProvider(access)
        monitor = WorkerMonitor()
        flow_monitor = monitor.for_flow(metrics=MetricsSettings.from_properties(properties))
        settings = WorkerSettings.from_config(
            config,
            rest.worker_id,
            properties,
            PluginModuleAllowlist.from_environment(environment),
            QueryCheck(environment, other_faults=transformation_faults).faults,
        )
        self._client_id = PersistentClientId(
            state_directory(environment) / "workers", settings.group_id
        )
        stores = kafka_backing_stores(properties, access)
        session_keys = SessionKeys(stores.configs, settings.inter_worker)
        requests = InterWorkerRequests(rest.options.client, session_keys)
        is_undivided = undivided_rule(spark.master)
        member = WorkerCoordinator(
            WorkerGroupSettings.from_config(config, properties),
            access,
            self._client_id.value,
            SparkPrestart(
                settings.group_id,
                self._applications,
                lambda: count_divided_tasks(stores.configs.snapshot(), is_undivided),
            ),
        )
        self.herder = DistributedHerder(
            settings,
            stores,
            HerderDependencies(
                registry=build_connector_registry(
                    reloaded, self._applications, flow_monitor, partial(membership_of, member)
                ),
                get_server_info=self._worker_info,
                providers=file.providers,
                fencer=partial(fence_producers, access),
                log_levels=log_levels,
                on_tasks_ended=flow_monitor.on_tasks_ended,
                read_worker_values=changing_client_values(file.raw, reloaded.latest),
                member=member,
                leader_requests=requests,
                get_url=lambda: advertised_url(rest.advertised, self.rest.address),
                is_undivided=is_undivided,
            ),
        )
        measured = MeasuredHerder(herder=self.herder, rebalances=member.rebalances)
        metrics = WorkerMetrics(
            [measured],
            monitor,
            self.herder.health,
            rest.ssl_config,
            ExposureSettings.from_properties(properties),
        )
        options = replace(
            rest.options,
            groups={None: WorkerGroupAccess(self.herder, requests)},
            get_figures=metrics.figures,
        )
        self.rest = RestServer(self.herder, rest.listeners, options, monitor)
        log.info(
            "Kafka Connect worker initialization took %.0fms", (time.monotonic() - began) * 1000
        )

    def run(self, shutdown: ShutdownSignal) -> int:
        """Run until the shutdown signal, or until the herder dies; returns the exit code."""
        self.start()
        failure: Exception | None = None
        while not shutdown.wait(HEALTH_CHECK_INTERVAL_S) and failure is None:
            failure = self.herder.await_stopped(0)
        self.stop()
        return EXIT_HERDER_DIED if failure else 0

    def start(self) -> None:
        """Start REST and the herder. Does not wait for the cluster."""
        log.info("Kafka Connect starting")
        self.rest.start()
        log.info("REST server listening at %s, advertising URL %s", *2 * [self.rest.address])
        self.herder.start()
        self._worker_info.start()
        log.info("Kafka Connect started")

    def stop(self) -> None:
        """Stop REST, connectors and tasks, and leave the group. Blocks."""
        log.info("Kafka Connect stopping")
        self._worker_info.stop()
        self.rest.stop(REST_STOP_TIMEOUT_S)
        self.herder.shut_down()
        self._applications.close()
        self._client_id.close()
        log.info("Kafka Connect stopped")
