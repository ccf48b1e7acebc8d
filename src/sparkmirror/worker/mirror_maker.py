"""Dedicated mode: all flows of an mm2.properties in one process, each with a herder of its own.

    mm2.properties ──▶ flows ──▶ a herder each, its state in the target's topics
                                     └─ once it has started: its three connectors, as the file says

One REST server speaks for all of them (`connect.flows`), on this computer's own address unless the
file names listeners.
"""

from __future__ import annotations

import logging
import socket
import threading
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sparkmirror.cluster.access import Access
from sparkmirror.config.dedicated import Dedicated
from sparkmirror.config.flowrules import Connector
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.value import Value
from sparkmirror.connect.flows import FlowsHerding, called
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.log_levels import LogLevels
from sparkmirror.connect.settings import WorkerSettings
from sparkmirror.connect.worker_life import Surroundings
from sparkmirror.directories import state_directory
from sparkmirror.errors import ConfigError, MirrorError, NotFound
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.listener import Listener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.settings import rest_settings
from sparkmirror.store.stores import kafka_stores
from sparkmirror.worker.about import About
from sparkmirror.worker.ending import Ending
from sparkmirror.worker.fence import fence_on
from sparkmirror.worker.kinds import connector_kinds
from sparkmirror.worker.sight import FlowSight, Sight
from sparkmirror.worker.spark_settings import SparkSettings

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
REST_WITHIN_S = 1.0
DIED = 1
LISTENERS = "listeners"
HERE = ("http://127.0.0.1:8083",)
"""Where REST listens unless the file says otherwise: MirrorMaker 2 has no REST here at all."""
ELSEWHERE = "http://127.0.0.1:0"
"""Where it listens instead if somebody is there already: nobody asked for REST, so it yields."""
ORDER = (Connector.HEARTBEAT, Connector.CHECKPOINT, Connector.SOURCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all flows of a process have in common."""

    spark: SparkSettings
    log_levels: LogLevels


class FlowHerder:
    """The herder of one flow, and the connectors that the file gives it."""

    def __init__(
        self,
        file: Dedicated,
        flow: SourceAndTarget,
        worker_id: str,
        shared: Shared,
        sight: FlowSight,
    ) -> None:
        self.flow = flow
        self._file = file
        properties = file.worker_config(flow)
        access = Access.from_properties(flow.target, properties)
        settings = WorkerSettings.of(DISTRIBUTED.parse(properties), worker_id)
        self._about = About(access)
        self.herder = Herder(
            settings,
            kafka_stores(properties, access),
            Surroundings(
                kinds=connector_kinds(properties, shared.spark, sight),
                about=self._about,
                providers=file.providers,
                fence=partial(fence_on, access),
                log_levels=shared.log_levels,
            ),
        )

    def start(self) -> None:
        """Begin; returns at once. The connectors follow when the herder has started."""
        self._about.start()
        self.herder.start()
        name = f"configure-{self.flow}"
        threading.Thread(target=self._configure_all, name=name, daemon=True).start()

    def stop(self) -> None:
        """End connectors and tasks, write that down."""
        self._about.stop()
        self.herder.shut_down()

    def _configure_all(self) -> None:
        try:
            self.herder.wait_started(float(threading.TIMEOUT_MAX))
        except MirrorError as error:
            log.error("The connectors of %s could not be configured: %s", self.flow, error)
            return
        log.info("This node is now a leader for %s. Configuring connectors...", self.flow)
        for connector in ORDER:
            try:
                self._configure(connector)
            except MirrorError as error:  # the others can do without it
                what = f"{connector.simple_name} connector for {self.flow}"
                log.error("Failed to configure %s: %s", what, error)

    def _configure(self, connector: Connector) -> None:
        """Write the config the file gives, unless it stands there already."""
        config = self._file.connector(self.flow, connector).plain
        name = config["name"]
        try:
            is_so = dict(self.herder.info(name).config) == dict(config)
        except NotFound:
            is_so = False
        if not is_so:
            self.herder.put_config(name, config)
        log.info("%s connector configured for %s.", name, self.flow)


class MirrorMaker:
    """One node. `run` belongs to the main thread."""

    def __init__(
        self,
        file: Dedicated,
        targets: Collection[str],
        environment: Mapping[str, str],
    ) -> None:
        """Put everything together; nothing is asked of a cluster yet. ConfigError lists faults."""
        log.info("Kafka MirrorMaker initializing ...")
        flows = file.flows_to_run(targets)
        log.info("Targeting clusters [%s]", ", ".join(targets or file.clusters))
        properties = _own_properties(file)
        rest = rest_settings(_own_config(file), properties, environment)
        shared = Shared(
            spark=SparkSettings.of(file.engine_config(), "mm2", state_directory(environment)),
            log_levels=LogLevels(),
        )
        sight = Sight()
        self.flows: Sequence[FlowHerder] = [
            FlowHerder(
                file,
                flow,
                _worker_id(file, flow, rest.worker_id),
                shared,
                sight.of_flow(called(flow, "")),
            )
            for flow in flows
        ]
        herders = {flow.flow: flow.herder for flow in self.flows}
        self.herding = FlowsHerding(herders, file.file.file or "its file")
        options = replace(rest.options, flows=tuple(herders))
        self._may_yield = LISTENERS not in file.said
        self._serve = partial(RestServer, self.herding, options=options, watching=sight)
        self.rest = self._serve(listeners=rest.listeners)

    def run(self, ending: Ending) -> int:
        """Mirror until told to end, or until a herder dies; returns the exit code."""
        log.info("Kafka MirrorMaker starting with %d herders.", len(self.flows))
        self._start_rest()
        log.info("REST server listening at %s", self.rest.address)
        for flow in self.flows:
            flow.start()
        log.info("Kafka MirrorMaker started")
        failed: list[FlowHerder] = []
        while not ending.wait(LOOK_EVERY_S) and not failed:
            failed = [flow for flow in self.flows if flow.herder.wait_over(0)]
        for flow in failed:
            log.error("The herder of %s has died: %s", flow.flow, flow.herder.wait_over(0))
        self._stop()
        return DIED if failed else 0

    def _start_rest(self) -> None:
        try:
            self.rest.start()
        except ConfigError as error:
            if not self._may_yield:
                raise
            log.warning("REST takes a port of the system's choice: %s", error)
            self.rest = self._serve(listeners=[Listener.parse(ELSEWHERE)])
            self.rest.start()

    def _stop(self) -> None:
        log.info("Kafka MirrorMaker stopping")
        self.rest.stop(REST_WITHIN_S)
        stops = [
            threading.Thread(target=flow.stop, name=f"stop-{flow.flow}") for flow in self.flows
        ]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        log.info("Kafka MirrorMaker stopped.")


def _own_properties(file: Dedicated) -> Mapping[str, str]:
    return file.expand({key: setting.value for key, setting in file.said.items()}).values


def _own_config(file: Dedicated) -> Mapping[str, Value]:
    config = file.own_config()
    if LISTENERS not in file.said:
        config[LISTENERS] = HERE
    return config


def _worker_id(file: Dedicated, flow: SourceAndTarget, rest_id: str) -> str:
    """How statuses name this node: unlike any other's, as MirrorMaker 2 does it."""
    if file.internal_rest:
        return f"{rest_id}/{flow}"
    return f"{socket.getfqdn()}/{flow}/{uuid.uuid4()}"
