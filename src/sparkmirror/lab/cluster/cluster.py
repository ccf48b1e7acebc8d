"""A real Kafka cluster on this computer.

    with ProcessReaper.start() as reaper:
        west = Cluster.start(ClusterSpec(name="west", brokers=3), directory, reaper)
        west.bootstrap_servers()      "127.0.0.1:21033,127.0.0.1:21035,127.0.0.1:21037"
        west.kill_broker(2)

`start` returns when every broker answers on every listener and knows all other brokers, users can
log in, and topics hold their records. A watching reaper ends the cluster when this process ends.
With a detached or released reaper the cluster keeps running, and `attach` finds it again by its
description.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.probe import ProbeResult
from sparkmirror.errors import Conflict, NotFound
from sparkmirror.lab.cluster.broker_process import BrokerProcess
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.client_settings import ClientSettings
from sparkmirror.lab.cluster.cluster_description import ClusterDescription
from sparkmirror.lab.cluster.cluster_setup import (
    create_cluster_directory,
    prepare_cluster,
    reassign_ports,
)
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.provisioning import create_topics, create_users
from sparkmirror.lab.cluster.readiness import (
    ListenerEndpoint,
    listener_endpoints,
    wait_for_login,
    wait_until_ready,
)
from sparkmirror.lab.cluster.sasl_config import DEFAULT_MECHANISM
from sparkmirror.lab.cluster.server_properties import server_properties
from sparkmirror.lab.kafka.kafka_installation import KafkaInstallation
from sparkmirror.lab.processes.port_registry import PortInUse, PortRegistry
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.processes.server_process import ServerProcess
from sparkmirror.lab.zookeeper.zookeeper_process import ZooKeeperProcess

log = logging.getLogger(__name__)

ProgressCallback = Callable[[str], None]

_START_ATTEMPTS = 3
_STOP_TIMEOUT_S = 15.0


class Cluster:
    """One cluster and its operations. A broker is named by its node id; the first one is 1."""

    def __init__(
        self,
        description: ClusterDescription,
        reaper: ProcessReaper,
        progress: ProgressCallback | None = None,
        ports: PortRegistry | None = None,
    ) -> None:
        self._progress = progress
        self._port_registry = ports or PortRegistry()
        self._authority = CertificateAuthority(description.tls_directory)
        self._description = description
        self._brokers = _create_brokers(description, reaper)
        self._zookeeper = _create_zookeeper(description, reaper)

    @classmethod
    def start(
        cls,
        spec: ClusterSpec,
        directory: Path,
        reaper: ProcessReaper,
        progress: ProgressCallback | None = None,
        ports: PortRegistry | None = None,
    ) -> Self:
        """Start a cluster in a directory that does not exist yet. Blocks until it is ready."""
        return cls._start([(spec, directory)], reaper, progress, ports)[0]

    @classmethod
    def start_all(
        cls,
        specs: Sequence[ClusterSpec],
        directory: Path,
        reaper: ProcessReaper,
        progress: ProgressCallback | None = None,
    ) -> list[Self]:
        """Start several clusters at the same time, each in a directory with its name. Blocks."""
        return cls._start([(spec, directory / spec.name) for spec in specs], reaper, progress)

    @classmethod
    def attach(cls, description: Mapping[str, Any], reaper: ProcessReaper | None = None) -> Self:
        """Return the cluster of a description that another process got from `describe`."""
        return cls(ClusterDescription.from_json(description), reaper or ProcessReaper.detached())

    def describe(self) -> dict[str, Any]:
        """Return the JSON object that `attach` needs. It holds passwords: keep it private."""
        return self._description.to_json()

    @property
    def name(self) -> str:
        """Its name."""
        return self._description.spec.name

    @property
    def spec(self) -> ClusterSpec:
        """The specification it was started from."""
        return self._description.spec

    @property
    def cluster_id(self) -> str:
        """Its Kafka cluster id."""
        return self._description.cluster_id

    @property
    def directory(self) -> Path:
        """The directory of all its files."""
        return self._description.directory

    @property
    def brokers(self) -> Mapping[int, BrokerProcess]:
        """Its brokers by node id."""
        return self._brokers

    @property
    def client_settings(self) -> ClientSettings:
        """The client settings for every listener and user."""
        return ClientSettings(self._description, self._authority)

    def bootstrap_servers(self, listener: ListenerProtocol | None = None) -> str:
        """Return `bootstrap.servers` for a listener; the first one if none is named."""
        return self.client_settings.bootstrap_servers(listener or self.spec.listeners[0])

    def client_properties(
        self,
        listener: ListenerProtocol | None = None,
        user: str | None = None,
        mechanism: str = DEFAULT_MECHANISM,
    ) -> dict[str, str]:
        """Return the client properties with which a user connects to a listener."""
        return self.client_settings.properties(listener or self.spec.listeners[0], user, mechanism)

    def access(
        self,
        listener: ListenerProtocol | None = None,
        user: str | None = None,
        mechanism: str = DEFAULT_MECHANISM,
    ) -> ClusterAccess:
        """Return the same for sparkmirror's own clients."""
        return self.client_settings.access(listener or self.spec.listeners[0], user, mechanism)

    def broker(self, node_id: int) -> BrokerProcess:
        """Return one broker. Raises NotFound."""
        try:
            return self._brokers[node_id]
        except KeyError:
            existing = ", ".join(str(existing_id) for existing_id in self._brokers)
            raise NotFound(f"{self.name} has no broker {node_id}: it has {existing}.") from None

    def _running_broker(self, node_id: int) -> BrokerProcess:
        broker = self.broker(node_id)
        if not broker.is_running():
            raise Conflict(f"{self.name}/{node_id} is down: start it first.")
        return broker

    def start_broker(self, node_id: int) -> None:
        """Start a broker that is down, and wait until it is ready."""
        broker = self.broker(node_id)
        self._start_zookeeper(node_id)
        broker.launch()
        self._wait_for_broker(node_id)

    def stop_broker(self, node_id: int) -> None:
        """Shut a broker down cleanly."""
        self.broker(node_id).stop()

    def kill_broker(self, node_id: int) -> None:
        """Kill a broker, as a crash would."""
        self.broker(node_id).kill()

    def restart_broker(self, node_id: int) -> None:
        """Shut a broker down cleanly and start it again."""
        self.stop_broker(node_id)
        self.start_broker(node_id)

    def pause_broker(self, node_id: int) -> None:
        """Pause a broker: connections stay open, requests get no answer."""
        self._running_broker(node_id).pause()

    def resume_broker(self, node_id: int) -> None:
        """Continue a paused broker, and wait until it is ready."""
        self._running_broker(node_id).resume()
        self._wait_for_broker(node_id)

    def wipe_broker(self, node_id: int) -> None:
        """Stop a broker and start it with an empty data directory.

        A cluster with one broker loses all its data. In a larger one the broker shuts down cleanly:
        it may lead the controllers, and a voter that has forgotten that it leads ends with an
        error until the others have elected another leader.
        """
        broker = self.broker(node_id)
        if len(self._brokers) == 1:
            self._wipe_data()
        else:
            broker.stop()
            broker.wipe()
        self.start_broker(node_id)
        self._create_users()

    def wipe(self) -> None:
        """Kill all brokers and start them with empty data directories."""
        self._wipe_data()
        self.start_brokers()
        self._create_users()

    def start_brokers(self) -> None:
        """Start every broker that is down, and wait until all are ready and know each other."""
        self._start_zookeeper(*self._brokers)
        for broker in self._brokers.values():
            broker.launch()
        self._wait_until_ready()

    def stop(self) -> None:
        """Shut all brokers down cleanly, and kill those that do not exit in time. Data stays."""
        for broker in self._brokers.values():
            broker.terminate()
        # Brokers that stop together may wait for each other's votes without end.
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while any(broker.is_running() for broker in self._brokers.values()):
            if time.monotonic() > deadline:
                log.info("Killing %s: not all brokers exited in %g s", self.name, _STOP_TIMEOUT_S)
                break
            time.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        """Kill all brokers, and ZooKeeper if there is one."""
        for server in self._servers():
            server.kill()

    def remove(self) -> None:
        """Kill all processes, remove all files and release the ports."""
        self.kill()
        _remove_files(self.directory, self._port_registry)

    @classmethod
    def _start(
        cls,
        wanted: Sequence[tuple[ClusterSpec, Path]],
        reaper: ProcessReaper,
        progress: ProgressCallback | None,
        ports: PortRegistry | None = None,
    ) -> list[Self]:
        """Launch the brokers of all clusters, then wait for one cluster after the other."""
        registry = ports or PortRegistry()
        created: list[Path] = []
        clusters: list[Self] = []
        try:
            for spec, directory in wanted:
                created.append(create_cluster_directory(directory))
                reaper.remove_on_exit(created[-1])
                description = prepare_cluster(spec, created[-1], registry)
                clusters.append(cls(description, reaper, progress, registry))
            for cluster in clusters:
                cluster._report_progress("starting")
                cluster._launch_zookeeper()
            for cluster in clusters:
                cluster._launch()
            for cluster in clusters:
                cluster._complete_start()
        except BaseException:
            for cluster in clusters:
                cluster.kill()
            for directory in created:
                _remove_files(directory, registry)
            raise
        return clusters

    def _launch(self) -> None:
        """Launch all brokers of a new cluster."""
        self._retry_on_other_ports(self._start_zookeeper)
        for node in self._description.nodes:
            broker = self._brokers[node.node_id]
            broker.prepare(
                server_properties(self._description, node, broker.data_directory, self._authority)
            )
            broker.launch()

    def _complete_start(self) -> None:
        """Wait until a new cluster is ready, then create its users and topics."""
        self._retry_on_other_ports(self._wait_until_ready, self._launch)
        self._create_users()
        create_topics(self.client_settings.admin_access(), self.spec.topics, self._report_progress)
        self._report_progress("ready")

    def _retry_on_other_ports(
        self, wait: Callable[[], None], launch: Callable[[], None] | None = None
    ) -> None:
        """Wait; if another process has bound a port, assign other ports, launch and wait again."""
        for attempts_left in reversed(range(_START_ATTEMPTS)):
            try:
                wait()
                break
            except PortInUse as error:
                if not attempts_left:
                    raise
                log.info("%s Trying other ports.", error)
                self._wipe_data()
                self._description = reassign_ports(self._description, self._port_registry)
                if launch is not None:
                    launch()

    def _wipe_data(self) -> None:
        """Kill all processes and empty their data directories."""
        for server in self._servers():
            server.wipe()

    def _servers(self) -> list[ServerProcess]:
        """Return the brokers, then ZooKeeper if there is one."""
        return [*self._brokers.values(), *([self._zookeeper] if self._zookeeper else [])]

    def _launch_zookeeper(self) -> None:
        address = self._description.zookeeper
        if self._zookeeper is not None and address is not None:
            self._zookeeper.prepare_and_launch(address)

    def _start_zookeeper(self, *brokers: int) -> None:
        """Start ZooKeeper, if there is one, and wait until it lets the brokers register.

        Brokers that run are registered already.
        """
        address = self._description.zookeeper
        if self._zookeeper is None or address is None:
            return
        self._launch_zookeeper()
        self._zookeeper.wait_until_ready(address, self.cluster_id)
        down = [node_id for node_id in brokers if not self._brokers[node_id].is_running()]
        self._zookeeper.wait_for_expiry(address, down)

    def _wait_until_ready(self) -> None:
        wait_until_ready(
            self._listener_endpoints(),
            self._expected_metadata(*self._brokers),
            self._report_progress,
        )

    def _wait_for_broker(self, node_id: int) -> None:
        """Wait for one broker; the operator may have stopped others."""
        endpoints = [
            endpoint for endpoint in self._listener_endpoints() if endpoint.node.node_id == node_id
        ]
        wait_until_ready(endpoints, self._expected_metadata(node_id), self._report_progress)

    def _create_users(self) -> None:
        """Create the users, and wait until the last one can log in on every SASL listener."""
        sasl_listeners = [listener for listener in self.spec.listeners if listener.uses_sasl]
        if not sasl_listeners:
            return
        self._report_progress("making users")
        create_users(self.client_settings.admin_access(), self.spec.users)
        last_user = list(self.spec.users)[-1]
        for endpoint in self._listener_endpoints():
            if endpoint.listener in sasl_listeners:
                access = self.client_settings.access(endpoint.listener, last_user)
                wait_for_login(endpoint, access)

    def _listener_endpoints(self) -> list[ListenerEndpoint]:
        clients = self.client_settings
        return [
            endpoint
            for node in self._description.nodes
            for endpoint in listener_endpoints(node, self._brokers[node.node_id], clients)
        ]

    def _expected_metadata(self, *alive: int) -> ProbeResult:
        return ProbeResult(cluster_id=self.cluster_id, brokers=frozenset(alive))

    def _report_progress(self, what: str) -> None:
        log.debug("%s: %s", self.name, what)
        if self._progress is not None:
            self._progress(f"{self.name}: {what}")


def _remove_files(directory: Path, ports: PortRegistry) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    ports.release(directory)


def _create_brokers(
    description: ClusterDescription, reaper: ProcessReaper
) -> dict[int, BrokerProcess]:
    installation = KafkaInstallation(description.spec)

    def create_broker(node_id: int) -> BrokerProcess:
        directory = description.directory / f"broker-{node_id}"
        return BrokerProcess(
            f"{description.spec.name}/{node_id}",
            directory,
            command=partial(installation.broker_command, directory),
            format_data=partial(
                installation.format_data_directory,
                cluster_id=description.cluster_id,
                node_id=node_id,
            ),
            reaper=reaper,
        )

    return {node.node_id: create_broker(node.node_id) for node in description.nodes}


def _create_zookeeper(
    description: ClusterDescription, reaper: ProcessReaper
) -> ZooKeeperProcess | None:
    if not description.spec.has_zookeeper:
        return None
    directory = description.directory / "zookeeper"
    return ZooKeeperProcess(
        f"{description.spec.name}/zookeeper",
        directory,
        command=partial(KafkaInstallation(description.spec).zookeeper_command, directory),
        reaper=reaper,
    )
