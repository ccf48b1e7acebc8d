"""Dedicated mode: all flows of an mm2.properties file in one process, one herder for each flow.

    mm2.properties ──▶ flows ──▶ one herder each, its state in topics of the target cluster
                                     └─ after its start: three connectors, configured by the file

One REST server serves all flows (`connect.herder.multi_flow_herder`), on the loopback address
unless the file has `listeners`.
"""

from __future__ import annotations

import logging
import socket
import threading
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sparkmirror import logging_context
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.plugin_module_allowlist import PluginModuleAllowlist
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.connect.connectors.shared.worker_client_config import changing_client_values
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.log_levels import LogLevels
from sparkmirror.connect.herder.multi_flow_herder import MultiFlowHerder, flow_connector_name
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.internal_requests.session_keys import SessionKeys
from sparkmirror.directories import state_directory
from sparkmirror.engine.supervisor.idle_driver import IdleDriver
from sparkmirror.errors import ConfigError, MirrorError
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.client.inter_worker_requests import InterWorkerRequests
from sparkmirror.rest.client.rest_client import RestClient
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.settings import advertised_url, rest_settings
from sparkmirror.rest.worker_group_access import NO_GROUP, WorkerGroupAccess
from sparkmirror.security.reloaded_properties import ReloadedProperties
from sparkmirror.store.backing_stores import kafka_backing_stores
from sparkmirror.worker.connector_progress import FlowMonitor, WorkerMonitor
from sparkmirror.worker.connector_wiring import (
    build_connector_registry,
    fence_producers,
    spark_applications,
)
from sparkmirror.worker.event_hubs_notice import log_event_hubs_values
from sparkmirror.worker.flow_connectors import (
    CONNECTOR_ORDER,
    configure_connectors,
    flow_switches,
    repeat_configuration,
    shares_spark,
)
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
from sparkmirror.worker.spark.spark_applications import SparkApplications
from sparkmirror.worker.spark.spark_settings import SparkSettings

log = logging.getLogger(__name__)

HEALTH_CHECK_INTERVAL_S = 0.5
REST_STOP_TIMEOUT_S = 1.0
EXIT_HERDER_DIED = 1
LEADER_CHECK_INTERVAL_S = 0.2
"""How often a node looks whether it leads the group of a flow: the leader writes the configs."""
LISTENERS = "listeners"
DEFAULT_LISTENERS = ("http://127.0.0.1:8083",)
"""Where REST listens if the file has no `listeners`. MirrorMaker 2 has no such REST server."""
FALLBACK_LISTENER = "http://127.0.0.1:0"
"""Where REST listens if the default port is taken: a free port of the system's choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFlowSettings:
    """What all flows of a process share."""

    applications: SparkApplications
    spark_master: str
    log_levels: LogLevels
    state_directory: Path
    client: RestClient
    """Sends requests to other nodes."""
    get_url: Callable[[], str]
    """Returns the address of the process's REST API, for other nodes."""
    plugin_modules: PluginModuleAllowlist


class FlowHerder:
    """The herder of one flow and its connectors, as the file configures them."""

    def __init__(
        self,
        file: MirrorMakerConfig,
        flow: SourceAndTarget,
        worker_id: str,
        shared: SharedFlowSettings,
        monitor: FlowMonitor,
    ) -> None:
        self.flow = flow
        self._file = file
        self._unconfigured = "Its connectors are not configured yet."
        self._stopping = threading.Event()
        properties = file.worker_config(flow)
        reloaded = ReloadedProperties(lambda: file.worker_config(flow))
        access = ClusterAccess.reloading(flow.target, reloaded.latest)
        log_event_hubs_values(access.cluster, properties)
        config = DISTRIBUTED.parse(properties)
        settings = WorkerSettings.from_config(
            config, worker_id, plugin_modules=shared.plugin_modules
        )
        self._worker_info = WorkerInfoProvider(access)
        self._client_id = PersistentClientId(
            shared.state_directory / "workers" / flow.target, settings.group_id
        )
        stores = kafka_backing_stores(properties, access)
        session_keys = SessionKeys(stores.configs, settings.inter_worker)
        self._requests = InterWorkerRequests(shared.client, session_keys, flow)
        is_undivided = undivided_rule(shared.spark_master)
        readiness = SparkPrestart(
            str(flow),
            shared.applications,
            lambda: count_divided_tasks(stores.configs.snapshot(), is_undivided),
        )
        self._member = member = WorkerCoordinator(
            WorkerGroupSettings.from_config(
                config, properties, is_exclusive=not file.internal_rest_enabled
            ),
            access,
            self._client_id.value,
            readiness if file.internal_rest_enabled else None,
        )
        self.herder = DistributedHerder(
            settings,
            stores,
            HerderDependencies(
                registry=build_connector_registry(
                    reloaded, shared.applications, monitor, partial(membership_of, member)
                ),
                get_server_info=self._worker_info,
                providers=file.providers,
                fencer=partial(fence_producers, access),
                log_levels=shared.log_levels,
                on_tasks_ended=monitor.on_tasks_ended,
                read_worker_values=changing_client_values(
                    file.layered_worker_config(flow).props, reloaded.latest
                ),
                member=member,
                get_url=shared.get_url,
                leader_requests=self._requests,
                is_undivided=is_undivided,
                configured_connectors={
                    config["name"]: config
                    for config in map(self._connector_config, CONNECTOR_ORDER)
                },
                get_unconfigured=lambda: self._unconfigured,
            ),
        )

    def group(self) -> WorkerGroupAccess:
        """Return the group of the flow's nodes, for REST. Without internal REST there is none."""
        if not self._file.internal_rest_enabled:
            return NO_GROUP
        return WorkerGroupAccess(self.herder, self._requests)

    def measured(self) -> MeasuredHerder:
        """Return the flow's herder, for the metrics."""
        prefix = flow_connector_name(self.flow, "")
        return MeasuredHerder(herder=self.herder, rebalances=self._member.rebalances, prefix=prefix)

    def start(self) -> None:
        """Start; returns at once. A thread configures the connectors once the herder runs."""
        with logging_context.flow_context(str(self.flow)):
            self._start()

    def _start(self) -> None:
        self._worker_info.start()
        self.herder.start()
        name = f"configure-{self.flow}"
        logging_context.ContextThread(target=self._configure_connectors, name=name).start()

    def stop(self) -> None:
        """Stop connectors and tasks and write their statuses."""
        with logging_context.flow_context(str(self.flow)):
            self._stopping.set()
            self._worker_info.stop()
            self.herder.shut_down()
            self._client_id.close()

    def _connector_config(self, connector: MirrorConnector) -> Mapping[str, str]:
        return self._file.layered_connector_config(self.flow, connector).props

    def _configure_connectors(self) -> None:
        try:
            if not self.herder.await_started(float(threading.TIMEOUT_MAX)):
                return  # the process ends
        except MirrorError as error:
            log.error("Connectors of flow %s are not configured: %s", self.flow, error)
            return
        is_configured = False
        while not self._stopping.is_set():
            is_leader = self.herder.is_leader()
            if is_leader and not is_configured:
                log.info("This node is now a leader for %s. Configuring connectors...", self.flow)
                self._configure_as_leader()
            elif not is_leader:
                self._unconfigured = ""
            is_configured = is_leader
            self._stopping.wait(LEADER_CHECK_INTERVAL_S)

    def _configure_as_leader(self) -> None:
        """Write the configs of the file. Ends if another node leads the group meanwhile."""
        attempts = repeat_configuration(
            partial(configure_connectors, self.herder, self._file, self.flow), self._stopping
        )
        for failures in attempts:
            self._unconfigured = failures
            if not self.herder.is_leader():
                return


class MirrorMaker:
    """One node of dedicated mode. The main thread calls `run`."""

    def __init__(
        self,
        file: MirrorMakerConfig,
        targets: Collection[str],
        environment: Mapping[str, str],
        idle_driver: IdleDriver | None = None,
    ) -> None:
        """Create all parts; connects to no cluster yet. Raises ConfigError with all faults.

        Spark's driver process is `idle_driver`, if Spark is needed from the start.
        """
        log.info("Kafka MirrorMaker initializing ...")
        flows = file.require_flows(targets)
        log.info("Targeting clusters [%s]", ", ".join(targets or file.clusters))
        properties = _own_properties(file)
        log_reporters_notice(properties)
        rest = rest_settings(_own_config(file), properties, environment).with_ports()
        spark = SparkSettings.from_properties(
            file.engine_config(), "mm2", state_directory(environment)
        )
        log_levels = create_log_levels(environment)
        self._applications = spark_applications(spark, log_levels, idle_driver)
        self._starts_spark_early = any(shares_spark(file, flow) for flow in flows)
        shared = SharedFlowSettings(
            applications=self._applications,
            spark_master=spark.master,
            log_levels=log_levels,
            state_directory=state_directory(environment),
            client=rest.options.client,
            get_url=lambda: advertised_url(rest.advertised, self.rest.address),
            plugin_modules=PluginModuleAllowlist.from_environment(environment),
        )
        monitor = WorkerMonitor()
        self.flow_herders: Sequence[FlowHerder] = [
            FlowHerder(
                file,
                flow,
                _worker_id(file, flow, rest.worker_id),
                shared,
                monitor.for_flow(
                    flow_connector_name(flow, ""),
                    MetricsSettings.of_flow(properties, file.worker_config(flow)),
                ),
            )
            for flow in flows
        ]
        herders = {flow.flow: flow.herder for flow in self.flow_herders}
        self.herder = MultiFlowHerder(
            herders,
            file.properties.file or "its file",
            {flow: flow_switches(file, flow) for flow in herders},
        )
        measured = [flow.measured() for flow in self.flow_herders]
        metrics = WorkerMetrics(
            measured,
            monitor,
            self.herder.health,
            rest.ssl_config,
            ExposureSettings.from_properties(properties),
        )
        options = replace(
            rest.options,
            groups={flow.flow: flow.group() for flow in self.flow_herders},
            get_figures=metrics.figures,
        )
        self._may_use_fallback_port = LISTENERS not in file.file_values
        self._create_rest_server = partial(
            RestServer, self.herder, options=options, monitor=monitor
        )
        self.rest = self._create_rest_server(listeners=rest.listeners)

    def run(self, shutdown: ShutdownSignal) -> int:
        """Run until the shutdown signal, or until a herder dies; returns the exit code."""
        log.info("Kafka MirrorMaker starting with %d herders.", len(self.flow_herders))
        self._start_rest()
        log.info("REST server listening at %s", self.rest.address)
        if self._starts_spark_early:
            self._applications.start_early()
        self._applications.end_idle_driver()
        for flow in self.flow_herders:
            flow.start()
        log.info("Kafka MirrorMaker started")
        failed: list[FlowHerder] = []
        while not shutdown.wait(HEALTH_CHECK_INTERVAL_S) and not failed:
            failed = [flow for flow in self.flow_herders if flow.herder.await_stopped(0)]
        for flow in failed:
            log.error(
                "The herder of flow %s has died; the process ends: %s",
                flow.flow,
                flow.herder.await_stopped(0),
            )
        self._stop()
        return EXIT_HERDER_DIED if failed else 0

    def _start_rest(self) -> None:
        try:
            self.rest.start()
        except ConfigError as error:
            is_default_port = self._may_use_fallback_port and error.faults[0].key == LISTENERS
            if not is_default_port:
                raise
            log.warning("The default REST port is taken, using a free one: %s", error)
            self.rest = self._create_rest_server(listeners=[RestListener.parse(FALLBACK_LISTENER)])
            self.rest.start()

    def _stop(self) -> None:
        log.info("Kafka MirrorMaker stopping")
        self.rest.stop(REST_STOP_TIMEOUT_S)
        stops = [
            threading.Thread(target=flow.stop, name=f"stop-{flow.flow}")
            for flow in self.flow_herders
        ]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        self._applications.close()
        log.info("Kafka MirrorMaker stopped.")


def _own_properties(file: MirrorMakerConfig) -> Mapping[str, str]:
    return file.expand({key: setting.value for key, setting in file.file_values.items()}).values


def _own_config(file: MirrorMakerConfig) -> Mapping[str, ParsedValue]:
    config = file.process_config()
    if LISTENERS not in file.file_values:
        config[LISTENERS] = DEFAULT_LISTENERS
    return config


def _worker_id(file: MirrorMakerConfig, flow: SourceAndTarget, rest_id: str) -> str:
    """The unique worker id of this node in statuses, in the format of MirrorMaker 2."""
    if file.internal_rest_enabled:
        return f"{rest_id}/{flow}"
    return f"{socket.getfqdn()}/{flow}/{uuid.uuid4()}"
