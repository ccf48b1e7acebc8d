"""A real Kafka cluster on this computer.

    with Guard.watch() as guard:
        west = Cluster.start(ClusterSpec(name="west", brokers=3), directory, guard)
        west.bootstrap()              "127.0.0.1:21033,127.0.0.1:21035,127.0.0.1:21037"
        west.kill_broker(2)

`start` returns when every broker answers on every listener and knows all the others, users can
log in, and topics hold their records. Under a watching guard the cluster goes with us; under a
detached or released one it stays, and `attach` finds it again by its description.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.probe import Glimpse
from sparkmirror.errors import Conflict, NotFound
from sparkmirror.lab.broker import Broker
from sparkmirror.lab.certificates import Authority
from sparkmirror.lab.clients import Clients
from sparkmirror.lab.creation import describe_new, make_directory, with_other_ports
from sparkmirror.lab.credentials import DEFAULT_MECHANISM
from sparkmirror.lab.description import Description
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.installation import Installation
from sparkmirror.lab.ports import Ports
from sparkmirror.lab.provision import make_topics, make_users
from sparkmirror.lab.readiness import Door, PortLost, doors, wait_for, wait_for_login
from sparkmirror.lab.server import server_properties
from sparkmirror.lab.spec import ClusterSpec, Listener

log = logging.getLogger(__name__)

Progress = Callable[[str], None]

_TRIES = 3
_ORDERLY_END_S = 15.0


class Cluster:
    """One cluster, and the verbs it understands. Brokers are named by their node id, from 1."""

    def __init__(
        self,
        described: Description,
        guard: Guard,
        progress: Progress | None = None,
        ports: Ports | None = None,
    ) -> None:
        self._progress = progress
        self._ports = ports or Ports()
        self._authority = Authority(described.tls_directory)
        self._described = described
        self._brokers = _brokers(described, guard)

    @classmethod
    def start(
        cls,
        spec: ClusterSpec,
        directory: Path,
        guard: Guard,
        progress: Progress | None = None,
        ports: Ports | None = None,
    ) -> Self:
        """Start a cluster in a directory that does not exist yet."""
        return cls._start([(spec, directory)], guard, progress, ports)[0]

    @classmethod
    def start_all(
        cls,
        specs: Sequence[ClusterSpec],
        directory: Path,
        guard: Guard,
        progress: Progress | None = None,
    ) -> list[Self]:
        """Start several clusters side by side, each in a directory of its name."""
        return cls._start([(spec, directory / spec.name) for spec in specs], guard, progress)

    @classmethod
    def attach(cls, description: Mapping[str, Any], guard: Guard | None = None) -> Self:
        """Find a cluster again that another process started and described."""
        return cls(Description.from_json(description), guard or Guard.detached())

    def describe(self) -> dict[str, Any]:
        """Write down what `attach` needs, as plain values. It holds passwords: keep it private."""
        return self._described.to_json()

    @property
    def name(self) -> str:
        """Its name."""
        return self._described.spec.name

    @property
    def spec(self) -> ClusterSpec:
        """What was wanted."""
        return self._described.spec

    @property
    def cluster_id(self) -> str:
        """Kafka's id for it."""
        return self._described.cluster_id

    @property
    def directory(self) -> Path:
        """Where all its files are."""
        return self._described.directory

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """Its brokers by node id."""
        return self._brokers

    @property
    def clients(self) -> Clients:
        """The ways in, all of them."""
        return Clients(self._described, self._authority)

    def bootstrap(self, listener: Listener | None = None) -> str:
        """Return `bootstrap.servers` for a listener; the first one if none is named."""
        return self.clients.bootstrap(listener or self.spec.listeners[0])

    def client_properties(
        self,
        listener: Listener | None = None,
        user: str | None = None,
        mechanism: str = DEFAULT_MECHANISM,
    ) -> dict[str, str]:
        """Return in Java's names how a user reaches a listener."""
        return self.clients.properties(listener or self.spec.listeners[0], user, mechanism)

    def access(
        self,
        listener: Listener | None = None,
        user: str | None = None,
        mechanism: str = DEFAULT_MECHANISM,
    ) -> Access:
        """Return the same for our own clients."""
        return self.clients.access(listener or self.spec.listeners[0], user, mechanism)

    def broker(self, node_id: int) -> Broker:
        """Return one broker."""
        try:
            return self._brokers[node_id]
        except KeyError:
            known = ", ".join(str(known) for known in self._brokers)
            raise NotFound(f"{self.name} has no broker {node_id}: it has {known}.") from None

    def _running(self, node_id: int) -> Broker:
        broker = self.broker(node_id)
        if not broker.runs():
            raise Conflict(f"{self.name}/{node_id} is down: start it first.")
        return broker

    def start_broker(self, node_id: int) -> None:
        """Start a broker that is down, and wait until it serves."""
        self.broker(node_id).launch()
        self._wait_for_broker(node_id)

    def stop_broker(self, node_id: int) -> None:
        """End a broker in an orderly way."""
        self.broker(node_id).stop()

    def kill_broker(self, node_id: int) -> None:
        """End a broker as a crash would."""
        self.broker(node_id).kill()

    def restart_broker(self, node_id: int) -> None:
        """End a broker in an orderly way and start it again."""
        self.stop_broker(node_id)
        self.start_broker(node_id)

    def pause_broker(self, node_id: int) -> None:
        """Freeze a broker: connections stay open, nothing is answered."""
        self._running(node_id).pause()

    def resume_broker(self, node_id: int) -> None:
        """Thaw a broker, and wait until it serves again."""
        self._running(node_id).resume()
        self._wait_for_broker(node_id)

    def wipe_broker(self, node_id: int) -> None:
        """Kill a broker and start it with an empty disk. A lone broker forgets everything."""
        self.broker(node_id).wipe()
        self.start_broker(node_id)
        self._make_users()

    def start_brokers(self) -> None:
        """Start every broker that is down, and wait until all serve and know each other."""
        for broker in self._brokers.values():
            broker.launch()
        self._wait_for_all()

    def stop(self) -> None:
        """End all brokers in an orderly way; what they keep stays."""
        for broker in self._brokers.values():
            broker.ask_to_end()
        # Brokers that end together may wait for each other's votes: at some point it is enough.
        deadline = time.monotonic() + _ORDERLY_END_S
        while any(broker.runs() for broker in self._brokers.values()):
            if time.monotonic() > deadline:
                log.info("%s does not end in an orderly way, so it is killed", self.name)
                break
            time.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        """End all brokers at once."""
        for broker in self._brokers.values():
            broker.kill()

    def remove(self) -> None:
        """End all brokers at once, and remove all files and claims."""
        self.kill()
        _remove(self.directory, self._ports)

    @classmethod
    def _start(
        cls,
        wanted: Sequence[tuple[ClusterSpec, Path]],
        guard: Guard,
        progress: Progress | None,
        ports: Ports | None = None,
    ) -> list[Self]:
        """Start clusters side by side: first every process, then one wait after the other."""
        registry = ports or Ports()
        made: list[Path] = []
        clusters: list[Self] = []
        try:
            for spec, directory in wanted:
                made.append(make_directory(directory))
                guard.remove_at_end(made[-1])
                described = describe_new(spec, made[-1], registry)
                clusters.append(cls(described, guard, progress, registry))
            for cluster in clusters:
                cluster._tell("starting")
                cluster._launch()
            for cluster in clusters:
                cluster._settle()
        except BaseException:
            for cluster in clusters:
                cluster.kill()
            for directory in made:
                _remove(directory, registry)
            raise
        return clusters

    def _launch(self) -> None:
        for node in self._described.nodes:
            broker = self._brokers[node.node_id]
            broker.prepare(server_properties(self._described, node, broker.data, self._authority))
            broker.launch()

    def _settle(self) -> None:
        """Wait for a cluster's first life, elsewhere if a port was lost, and furnish it."""
        for tries_left in reversed(range(_TRIES)):
            try:
                self._wait_for_all()
                break
            except PortLost as lost:
                if not tries_left:
                    raise
                log.info("%s Trying other ports.", lost)
                for broker in self._brokers.values():
                    broker.wipe()
                self._described = with_other_ports(self._described, self._ports)
                self._launch()
        self._make_users()
        make_topics(self.clients.own_access(), self.spec.topics, self._tell)
        self._tell("ready")

    def _wait_for_all(self) -> None:
        wait_for(self._doors(), self._expected(*self._brokers), self._tell)

    def _wait_for_broker(self, node_id: int) -> None:
        """Wait for one broker; others may be down on purpose."""
        found = [door for door in self._doors() if door.node.node_id == node_id]
        wait_for(found, self._expected(node_id), self._tell)

    def _make_users(self) -> None:
        """Make users who can log in everywhere; a broker learns of them a moment later."""
        knowing = [listener for listener in self.spec.listeners if listener.has_users]
        if not knowing:
            return
        self._tell("making users")
        make_users(self.clients.own_access(), self.spec.users)
        last_made = list(self.spec.users)[-1]
        for door in self._doors():
            if door.listener in knowing:
                wait_for_login(door, self.clients.access(door.listener, last_made))

    def _doors(self) -> list[Door]:
        clients = self.clients
        return [
            door
            for node in self._described.nodes
            for door in doors(node, self._brokers[node.node_id], clients)
        ]

    def _expected(self, *alive: int) -> Glimpse:
        return Glimpse(cluster_id=self.cluster_id, brokers=frozenset(alive))

    def _tell(self, what: str) -> None:
        log.debug("%s: %s", self.name, what)
        if self._progress is not None:
            self._progress(f"{self.name}: {what}")


def _remove(directory: Path, ports: Ports) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    ports.release(directory)


def _brokers(described: Description, guard: Guard) -> dict[int, Broker]:
    installation = Installation(described.spec)

    def make(node_id: int) -> Broker:
        directory = described.directory / f"broker-{node_id}"
        return Broker(
            f"{described.spec.name}/{node_id}",
            directory,
            command=partial(installation.command, directory),
            format_data=partial(
                installation.format, cluster_id=described.cluster_id, node_id=node_id
            ),
            guard=guard,
        )

    return {node.node_id: make(node.node_id) for node in described.nodes}
