"""Two clusters of one broker each, between which one system at a time copies."""

from __future__ import annotations

import itertools
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.connect_worker import ConnectWorker
from bench.flow import Flow
from bench.system_process import SystemProcess
from bench.systems import ROOT, System
from bench.topics import add_records, create_topic, fill_topic
from bench.transform_chain import TransformChain
from bench.workloads import Workload
from sparkmirror.cluster.admin import Admin
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.processes.process_reaper import ProcessReaper

HEAP = "1g"
USERS = {"mirror": "mirror-secret"}
"""The user of clusters whose listener needs a login."""
PROPERTIES = {
    # Brokers delete the files of a run's topics before the next run begins.
    "log.segment.delete.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  Linux's directory in memory
_MIN_FREE_BYTES = 8 << 30

_PROGRAM_END_S = 30.0


@dataclass(slots=True, kw_only=True)
class BenchClusters:
    """A source and a target cluster. `running_clusters` creates it."""

    source: Cluster
    target: Cluster
    reaper: ProcessReaper
    directory: Path
    source_bootstrap: str
    listener: ListenerProtocol = ListenerProtocol.PLAINTEXT
    """The listener that all clients use."""
    _run_numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def fill_source_topic(self, topic: str, workload: Workload, partitions: int) -> int:
        """Create a topic on the source, fill it, and return its number of records."""
        return fill_topic(self.source.access(), topic, workload, partitions)

    def add_records(self, topic: str, workload: Workload, partitions: int) -> int:
        """Write a workload to a topic of the source, and return its number of records."""
        return add_records(self.source.access(), topic, workload, partitions)

    def warm_up_target(self, workload: Workload, partitions: int) -> None:
        """Write a workload to the target, so that its JVM has compiled the append path.

        `fill_source_topic` warms up the source.
        """
        fill_topic(self.target.access(), workload.name, workload, partitions)
        self._delete_target_topics()

    def flow(
        self,
        topics: Sequence[str],
        partitions: int,
        codec: str = "none",
        chain: TransformChain | None = None,
        *,
        tasks: int = 1,
        all_connectors: bool = False,
        epoch_s: float | None = None,
    ) -> Flow:
        """Return a flow with an alias that no other run has."""
        return Flow(
            source=self.source_bootstrap,
            target=self.target.bootstrap_servers(self.listener),
            topics=tuple(topics),
            partitions=partitions,
            alias=f"run{next(self._run_numbers)}",
            codec=codec,
            chain=chain,
            tasks=tasks,
            all_connectors=all_connectors,
            epoch_s=epoch_s,
            source_client=self._security(self.source),
            target_client=self._security(self.target),
        )

    def _security(self, cluster: Cluster) -> dict[str, str]:
        """Return the client settings without the address. None for a plain listener."""
        if self.listener is ListenerProtocol.PLAINTEXT:
            return {}
        properties = cluster.client_properties(self.listener)
        return {key: value for key, value in properties.items() if key != "bootstrap.servers"}

    @contextmanager
    def running_system(self, system: System, flow: Flow) -> Iterator[SystemProcess]:
        """Start a system. After the block, kill it and delete its topics on the target."""
        is_routed = flow.chain is not None and flow.chain.topic_suffix
        if system is System.PLAIN_LOOP or is_routed:  # neither the loop nor Java creates them
            for topic in flow.topics:
                create_topic(self.target.access(), flow.remote_topic(topic), flow.partitions)
        process = SystemProcess(
            system, flow, self.directory / f"{flow.alias}-{system}", self.reaper
        )
        try:
            yield process
        finally:
            process.kill()
            self._delete_target_topics()

    @contextmanager
    def running_worker(
        self,
        system: System,
        properties: Mapping[str, str],
        directory: Path,
        state: Path | None = None,
    ) -> Iterator[ConnectWorker]:
        """Start a Connect worker. After the block, kill it and delete all topics of the target.

        `state` is the directory of a worker before it on the same computer.
        """
        worker = ConnectWorker(system, properties, directory, self.reaper, state)
        try:
            yield worker
        finally:
            worker.kill()
            self._delete_target_topics()

    @contextmanager
    def running_program(self, module: str, *arguments: object) -> Iterator[None]:
        """Run a module of this package as a process; stop it with SIGTERM after the block."""
        process = self.reaper.launch(
            [sys.executable, "-m", module, *(str(argument) for argument in arguments)],
            log=self.directory / f"{module}.log",
            cwd=ROOT,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait_for_exit(_PROGRAM_END_S)

    @contextmanager
    def target_topic(self, name: str, partitions: int) -> Iterator[None]:
        """Create a topic of the target; delete all of its topics after the block."""
        create_topic(self.target.access(), name, partitions)
        try:
            yield
        finally:
            self._delete_target_topics()

    def delete_source_topics(self, topics: Sequence[str]) -> None:
        """Delete topics of the source."""
        with Admin(self.source.access()) as admin:
            admin.delete_topics(topics)

    def _delete_target_topics(self) -> None:
        """Delete all topics of the target except Kafka's internal ones."""
        with Admin(self.target.access()) as admin:
            admin.delete_topics(
                [name for name in admin.describe_topics() if not name.startswith("__")]
            )


@contextmanager
def running_clusters(
    reaper: ProcessReaper,
    show_status: Callable[[str], None],
    advertised: str | None = None,
    listener: ListenerProtocol = ListenerProtocol.PLAINTEXT,
) -> Iterator[BenchClusters]:
    """Start both clusters, and remove them after the block.

    `advertised` is the advertised listener of the source, for a proxy in front of it.
    """
    secured: dict[str, Any] = {}
    if listener is not ListenerProtocol.PLAINTEXT:
        secured = {"listeners": (listener,), "users": USERS}
    directory = Path(tempfile.mkdtemp(prefix="sparkmirror-bench-", dir=_memory_directory()))
    reaper.remove_on_exit(directory)
    source_listener = {"advertised.listeners": f"PLAINTEXT://{advertised}"} if advertised else {}
    specs = [
        ClusterSpec(
            name="source", heap=HEAP, properties={**PROPERTIES, **source_listener}, **secured
        ),
        ClusterSpec(name="target", heap=HEAP, properties=PROPERTIES, **secured),
    ]
    source, target = Cluster.start_all(specs, directory, reaper, show_status)
    try:
        yield BenchClusters(
            source=source,
            target=target,
            reaper=reaper,
            directory=directory,
            source_bootstrap=advertised or source.bootstrap_servers(listener),
            listener=listener,
        )
    finally:
        for cluster in (source, target):
            cluster.remove()


def _memory_directory() -> Path | None:
    """Return a directory in memory, which is faster than a disk; None if too little is free."""
    if _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free >= _MIN_FREE_BYTES:
        return _SHARED_MEMORY
    return None
