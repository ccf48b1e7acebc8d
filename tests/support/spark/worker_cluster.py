"""Worker processes of one group over real clusters, each behind its own proxies to the brokers.

A test kills, suspends, cuts off and restarts them while records are copied. Each worker has its own
Spark. A worker is cut off from both clusters by holding what its proxies forward; one in a network
namespace is cut off from the other workers, too, by taking its link down.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.wire.net.address import Address
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_worker,
)
from tests.support.cli.property_files import worker_properties
from tests.support.kafka.broker_proxy import BrokerProxy
from tests.support.kafka.clusters import SharedCluster
from tests.support.network_namespaces import NetworkNamespace, network_namespaces
from tests.support.waiting import wait_until

LOOPBACK = "127.0.0.1"
WORKERS = ("W1", "W2", "W3")
ALIASES = ("east", "west")
SECOND_EPOCH = "Epoch 2: first slot connected"
POLL_INTERVAL_S = 0.2
"""How often the REST API of the workers is asked."""
ENV_PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": ("org.apache.kafka.common.config.provider.EnvVarConfigProvider"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedClusters:
    """Source and target; every worker reaches each through a proxy of its own."""

    source: Cluster
    target: Cluster
    proxies: Mapping[str, Sequence[BrokerProxy]]
    """By worker: the proxy of the source's broker, then that of the target's."""
    namespaces: Mapping[str, NetworkNamespace] = field(default_factory=dict)
    """By worker, if workers run in network namespaces."""

    @property
    def source_bootstrap(self) -> str:
        return self.source.bootstrap_servers()

    @property
    def target_bootstrap(self) -> str:
        return self.target.bootstrap_servers()


@contextmanager
def proxied_clusters(
    reaper: ProcessReaper, directory: Path, *, uses_namespaces: bool = False
) -> Iterator[ProxiedClusters]:
    """Start both clusters, with a listener and a proxy for each worker.

    `uses_namespaces` makes a network namespace for each worker.
    """
    with ExitStack() as stack:
        namespaces: dict[str, NetworkNamespace] = {}
        if uses_namespaces:
            namespaces = stack.enter_context(network_namespaces(WORKERS))
        hosts = {name: namespaces[name].outer if namespaces else LOOPBACK for name in WORKERS}
        proxies = {
            name: tuple(stack.enter_context(BrokerProxy(hosts[name])) for _ in ALIASES)
            for name in WORKERS
        }
        specs = [
            ClusterSpec(
                name=f"{'separated' if namespaces else 'faults'}-{alias}",
                fast_start=True,
                proxied_listeners={name: proxies[name][side].address for name in WORKERS},
            )
            for side, alias in enumerate(ALIASES)
        ]
        clusters = Cluster.start_all(specs, directory, reaper, lambda _text: None)
        for side, cluster in enumerate(clusters):
            stack.callback(cluster.remove)
            for name in WORKERS:
                listener = cluster.client_settings.bootstrap_servers(name)
                proxies[name][side].forward_to(Address.parse(listener))
        source, target = clusters
        yield ProxiedClusters(source=source, target=target, proxies=proxies, namespaces=namespaces)


@dataclass(slots=True, kw_only=True)
class WorkerCluster:
    """The workers of one group and their source connector."""

    clusters: ProxiedClusters
    group: str
    directory: Path
    ports: Mapping[str, int]
    properties: Mapping[str, str]
    stack: ExitStack
    is_undivided: bool = False
    """Whether one worker runs all tasks: its Spark is a cluster."""
    running: dict[str, MirrorProcess] = field(default_factory=dict)
    """The workers that run and are neither suspended nor cut off."""
    _starts: Counter[str] = field(default_factory=Counter)

    @property
    def topic(self) -> str:
        """The only topic that the connector copies."""
        return f"{self.group}.t"

    @property
    def remote(self) -> str:
        return f"east.{self.topic}"

    def worker_id(self, name: str) -> str:
        return f"{self._host(name)}:{self.ports[name]}"

    def _host(self, name: str) -> str:
        namespace = self.clusters.namespaces.get(name)
        return LOOPBACK if namespace is None else namespace.inner

    def connector_config(self, tasks: int) -> dict[str, str]:
        """The config of the source connector. Each worker finds the clusters in its environment."""
        return {
            "connector.class": "MirrorSourceConnector",
            "source.cluster.alias": "east",
            "target.cluster.alias": "west",
            "source.cluster.bootstrap.servers": "${env:EAST}",
            "target.cluster.bootstrap.servers": "${env:WEST}",
            "topics": f"{self.group}\\..*",
            "tasks.max": str(tasks),
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "heartbeats.replication.enabled": "false",
        }

    # -- workers ---------------------------------------------------------------------------------

    def launch(self, name: str, python_path: str = "") -> MirrorProcess:
        """Start a worker, of another tree with `python_path`; returns at once."""
        self._starts[name] += 1
        directory = self.directory / f"{name}-{self._starts[name]}"
        source, target = (proxy.address for proxy in self.clusters.proxies[name])
        properties = {
            **worker_properties(_at(target), self.group),
            **ENV_PROVIDER,
            **self.properties,
            "listeners": f"http://{self.worker_id(name)}",
        }
        environ = {**os.environ, "EAST": source, "WEST": target}
        if python_path:
            environ["PYTHONPATH"] = python_path
        namespace = self.clusters.namespaces.get(name)
        prefix = [] if namespace is None else namespace.command
        worker = self.stack.enter_context(running_worker(properties, directory, environ, prefix))
        self.running[name] = worker
        return worker

    def start(self, *names: str, python_path: str = "") -> None:
        """Start workers; return when all of them are healthy."""
        workers = [self.launch(name, python_path) for name in names]
        wait_until(
            lambda: all(one.request("GET", "/health").status == 200 for one in workers),
            f"{names} to be healthy",
            SPARK_TIMEOUT_S,
            POLL_INTERVAL_S,
        )

    def kill(self, name: str, *, with_spark: bool = False) -> None:
        """Kill a worker; with its Spark, as if its computer had died."""
        worker = self.running.pop(name)
        processes = worker.processes() if with_spark else []
        worker.send_signal(signal.SIGKILL)
        for process in processes:
            process.kill()

    def suspend(self, name: str) -> MirrorProcess:
        """Suspend a worker and its Spark."""
        worker = self.running.pop(name)
        for process in worker.processes():
            process.send_signal(signal.SIGSTOP)
        return worker

    def resume(self, name: str, worker: MirrorProcess) -> None:
        for process in worker.processes():
            process.send_signal(signal.SIGCONT)
        self.running[name] = worker

    def cut_off(self, name: str) -> MirrorProcess:
        """Lose everything between a worker and all others, or hold what it and brokers send."""
        if namespace := self.clusters.namespaces.get(name):
            namespace.cut()
        else:
            for proxy in self.clusters.proxies[name]:
                proxy.hold()
        return self.running.pop(name)

    def reconnect(self, name: str, worker: MirrorProcess) -> None:
        if namespace := self.clusters.namespaces.get(name):
            namespace.restore()
        else:
            for proxy in self.clusters.proxies[name]:
                proxy.release()
        self.running[name] = worker

    def wait_for_second_epoch(self) -> None:
        """Wait until the short first epoch of every Spark is over: its end is a pause, too."""

        def is_over(worker: MirrorProcess) -> bool:
            logs = worker.log.parent.rglob("spark-application.log")
            return any(SECOND_EPOCH in one.read_text("utf-8", errors="replace") for one in logs)

        wait_until(
            lambda: all(map(is_over, self.running.values())),
            "the second epoch of every worker",
            SPARK_TIMEOUT_S,
            POLL_INTERVAL_S,
        )

    # -- the connector ---------------------------------------------------------------------------

    def task_owners(self, asked: str) -> dict[int, str]:
        """The workers of the tasks that run, as one worker answers."""
        answer = self.running[asked].request("GET", f"{connector_path(self.group)}/status")
        if answer.status != 200:
            return {}
        return {
            task["id"]: task["worker_id"]
            for task in answer.json["tasks"]
            if task["state"] == "RUNNING"
        }

    def has_shares(self, tasks: int) -> bool:
        """Whether all tasks run, on all running workers, evenly, by the answer of each.

        Undivided tasks run on one of them.
        """
        ids = {self.worker_id(name) for name in self.running}
        for asked in self.running:
            counts = Counter(self.task_owners(asked).values())
            if counts.total() != tasks or not counts.keys() <= ids:
                return False
            least = 0 if self.is_undivided else tasks // len(ids)
            if min(counts[worker_id] for worker_id in ids) < least:
                return False
        return True

    def wait_for_shares(self, tasks: int) -> None:
        """Wait until all tasks run, evenly on the running workers."""
        try:
            wait_until(lambda: self.has_shares(tasks), "", SPARK_TIMEOUT_S, POLL_INTERVAL_S)
        except AssertionError:
            found = {asked: self.task_owners(asked) for asked in self.running}
            raise AssertionError(
                f"{tasks} tasks are not on {sorted(self.running)}: {found}"
            ) from None


@contextmanager
def running_worker_cluster(
    clusters: ProxiedClusters,
    group: str,
    directory: Path,
    properties: Mapping[str, str],
    *,
    is_undivided: bool = False,
) -> Iterator[WorkerCluster]:
    """A group without a worker yet. The workers that it starts end with the block.

    `properties` are those of every worker, over the usual ones.
    """
    ports = dict(zip(WORKERS, PortRegistry().claim(len(WORKERS), directory), strict=True))
    with ExitStack() as stack:
        yield WorkerCluster(
            clusters=clusters,
            group=group,
            directory=directory,
            ports=ports,
            properties=properties,
            stack=stack,
            is_undivided=is_undivided,
        )


def _at(bootstrap: str) -> SharedCluster:
    return SharedCluster(name="west", properties={"bootstrap.servers": bootstrap})
