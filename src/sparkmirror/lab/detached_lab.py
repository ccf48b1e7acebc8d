"""A lab that keeps running after the command that started it, until `lab down`.

    lab = DetachedLab.start(store, "default", specs, print)      from one process
    lab = DetachedLab.open(store, "default")                      from any other, later
    lab.down()

Until `start` returns, a reaper process watches: after Ctrl-C, a crash or kill -9 nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from sparkmirror.errors import NotFound
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.cluster_status import ClusterStatus, cluster_status
from sparkmirror.lab.kafka.kafka_tool_table import ToolConnection
from sparkmirror.lab.lab_store import LabRecord, LabStore
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.properties_file import write_properties


class DetachedLab:
    """The clusters of one lab."""

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
        """Start clusters that outlive this process, and store the lab; leave nothing on failure.

        The caller holds `store.lock(name)`, and no lab of this name is up.
        """
        directory = store.directory(name)
        # A power failure may have left files of a lab that was never stored.
        store.remove(name)
        with ProcessReaper.start() as reaper:
            reaper.remove_on_exit(directory)
            directory.mkdir(parents=True, mode=0o700)
            clusters = Cluster.start_all(specs, directory, reaper, progress)
            descriptions = tuple(cluster.describe() for cluster in clusters)
            store.write(LabRecord(name=name, clusters=descriptions))
            reaper.release()
        return cls(store, name, clusters)

    @classmethod
    def open(cls, store: LabStore, name: str, reaper: ProcessReaper | None = None) -> Self | None:
        """Return the stored lab; None if there is none."""
        record = store.read(name)
        if record is None:
            return None
        return cls(store, name, [Cluster.attach(plain, reaper) for plain in record.clusters])

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """The clusters by name, in the order of the specifications."""
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
        """Return the status of every cluster."""
        return [cluster_status(cluster) for cluster in self._clusters.values()]

    def start_brokers(self) -> None:
        """Start all brokers that are down."""
        for cluster in self._clusters.values():
            cluster.start_brokers()

    def down(self) -> None:
        """Stop every broker and remove all files."""
        for cluster in self._clusters.values():
            cluster.remove()
        self._store.remove(self.name)


def remove_stale_lab(store: LabStore, name: str) -> bool:
    """Remove a lab that ended with a restart of the computer; return whether it was removed."""
    record = store.read(name)
    if record is None or not record.is_from_previous_boot():
        return False
    store.remove(name)
    return True


def tool_connection(cluster: Cluster) -> ToolConnection:
    """Return how Kafka's tools connect to a cluster, as its first user if a listener has users.

    Writes the settings into a file beside the cluster, because the tools read them from a file.
    """
    listener = _listener_for_tools(cluster.spec)
    properties = cluster.client_properties(listener)
    bootstrap = properties.pop("bootstrap.servers")
    if listener is ListenerProtocol.PLAINTEXT:
        return ToolConnection(bootstrap_servers=bootstrap)
    file = write_properties(cluster.directory / "client.properties", properties)
    return ToolConnection(bootstrap_servers=bootstrap, config_file=str(file))


def _listener_for_tools(spec: ClusterSpec) -> ListenerProtocol:
    with_login = [listener for listener in spec.listeners if listener.uses_sasl]
    if not with_login and spec.mutual_tls:
        return ListenerProtocol.SSL
    return (with_login or list(spec.listeners))[0]
