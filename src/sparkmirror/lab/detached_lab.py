"""A lab that lives on after the command that started it, until somebody takes it down.

    lab = DetachedLab.start(store, "default", specs, print)      from one process
    lab = DetachedLab.open(store, "default")                      from any other, later
    lab.down()

Until `start` returns, a guard stands by: Ctrl-C, a crash or kill -9 in between leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from sparkmirror.errors import NotFound
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.cluster_status import ClusterStatus, cluster_status
from sparkmirror.lab.cluster.properties_file import write_properties
from sparkmirror.lab.kafka.kafka_tools import ToolConnection
from sparkmirror.lab.lab_store import LabRecord, LabStore
from sparkmirror.lab.processes.process_reaper import ProcessReaper


class DetachedLab:
    """Some clusters under one name."""

    def __init__(self, store: LabStore, name: str, clusters: Sequence[Cluster]) -> None:
        self.name = name
        self._store = store
        self._clusters = {cluster.name: cluster for cluster in clusters}

    @classmethod
    def start(
        cls,
        store: LabStore,
        name: str,
        specs: Sequence[ClusterSpec],
        progress: Callable[[str], None],
    ) -> Self:
        """Start clusters, write them down, and let them live on; or leave nothing at all.

        The caller holds `store.changing(name)` and has seen that there is no such lab.
        """
        directory = store.directory(name)
        # A power failure may have left some of a lab that was never written down.
        store.remove(name)
        with ProcessReaper.start() as guard:
            guard.remove_on_exit(directory)
            directory.mkdir(parents=True, mode=0o700)
            clusters = Cluster.start_all(specs, directory, guard, progress)
            described = tuple(cluster.describe() for cluster in clusters)
            store.write(LabRecord(name=name, clusters=described))
            guard.release()
        return cls(store, name, clusters)

    @classmethod
    def open(cls, store: LabStore, name: str, guard: ProcessReaper | None = None) -> Self | None:
        """Find a lab again; None if there is none."""
        record = store.read(name)
        if record is None:
            return None
        return cls(store, name, [Cluster.attach(plain, guard) for plain in record.clusters])

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """Its clusters by name, in the order they were given."""
        return self._clusters

    def cluster(self, name: str | None = None) -> Cluster:
        """Return one cluster; the first if none is named."""
        if name is None:
            return next(iter(self._clusters.values()))
        try:
            return self._clusters[name]
        except KeyError:
            known = ", ".join(self._clusters)
            raise NotFound(f"There is no cluster {name!r} in this lab: it has {known}.") from None

    def status(self) -> list[ClusterStatus]:
        """Look at every cluster."""
        return [cluster_status(cluster) for cluster in self._clusters.values()]

    def start_brokers(self) -> None:
        """Start whatever is down."""
        for cluster in self._clusters.values():
            cluster.start_brokers()

    def down(self) -> None:
        """End every broker and remove every file."""
        for cluster in self._clusters.values():
            cluster.remove()
        self._store.remove(self.name)


def remove_stale_lab(store: LabStore, name: str) -> bool:
    """Clear a lab away that did not survive a restart of the computer; tell whether it was so."""
    record = store.read(name)
    if record is None or not record.is_from_previous_boot():
        return False
    store.remove(name)
    return True


def tool_connection(cluster: Cluster) -> ToolConnection:
    """Say how Kafka's tools reach a cluster, as the user who may do most.

    That is its first user, if there is a listener that knows users. The settings go into a file
    beside the cluster, because the tools take them in no other way.
    """
    listener = _listener_for_tools(cluster.spec)
    properties = cluster.client_properties(listener)
    bootstrap = properties.pop("bootstrap.servers")
    if listener is ListenerProtocol.PLAINTEXT:
        return ToolConnection(bootstrap_servers=bootstrap)
    file = write_properties(cluster.directory / "client.properties", properties)
    return ToolConnection(bootstrap_servers=bootstrap, config_file=str(file))


def _listener_for_tools(spec: ClusterSpec) -> ListenerProtocol:
    knowing = [listener for listener in spec.listeners if listener.uses_sasl]
    if not knowing and spec.mutual_tls:
        return ListenerProtocol.SSL
    return (knowing or list(spec.listeners))[0]
