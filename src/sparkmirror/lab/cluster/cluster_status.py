"""The status of a cluster and its brokers, as plain values for tables and JSON."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparkmirror.lab.cluster.broker_process import BrokerProcess
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_description import ClusterDescription
from sparkmirror.lab.cluster.node_listeners import LabNode

BrokerState = Literal["running", "paused", "down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """The status of one broker. Paths are text, so that it can be written as JSON."""

    id: int
    state: BrokerState
    pid: int | None
    ports: Mapping[str, int]
    data: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The status of one cluster. `listeners` maps each listener to its bootstrap servers."""

    name: str
    version: str
    cluster_id: str
    bootstrap: str
    listeners: Mapping[str, str]
    directory: str
    zookeeper: str | None
    """The address of its ZooKeeper, for Kafka's old tools; None if there is no ZooKeeper."""
    brokers: tuple[BrokerStatus, ...]

    @property
    def is_down(self) -> bool:
        """Whether none of its brokers has a process."""
        return all(broker.state == "down" for broker in self.brokers)


def cluster_status(cluster: Cluster) -> ClusterStatus:
    """Return the current status of a cluster."""
    description = ClusterDescription.from_json(cluster.describe())
    return ClusterStatus(
        name=cluster.name,
        version=cluster.spec.version,
        cluster_id=cluster.cluster_id,
        bootstrap=cluster.bootstrap_servers(),
        listeners={
            listener.value: cluster.bootstrap_servers(listener)
            for listener in cluster.spec.listeners
        },
        directory=str(cluster.directory),
        zookeeper=None if description.zookeeper is None else str(description.zookeeper),
        brokers=tuple(
            _broker_status(node, cluster.broker(node.node_id)) for node in description.nodes
        ),
    )


def _broker_status(node: LabNode, broker: BrokerProcess) -> BrokerStatus:
    pid = broker.pid
    return BrokerStatus(
        id=node.node_id,
        state=_state(pid),
        pid=pid,
        ports=dict(node.ports),
        data=str(broker.data_directory),
        log=str(broker.log_file),
    )


def _state(pid: int | None) -> BrokerState:
    if pid is None:
        return "down"
    return "paused" if _process_state(pid) == "T" else "running"


def _process_state(pid: int) -> str:
    """Return the process state letter of the operating system; T is a stopped process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0]
    except FileNotFoundError:
        answer = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True)
        return answer.stdout.decode(errors="replace").strip()[:1]
