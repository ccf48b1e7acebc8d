"""Two clusters of one broker each, and contestants that run between them one by one."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.flow import Flow
from bench.system_process import SystemProcess
from bench.systems import System
from bench.topics import create_topic, fill_topic
from bench.workloads import Workload
from sparkmirror.cluster.admin import Admin
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.process_reaper import ProcessReaper

HEAP = "1g"
PROPERTIES = {
    # What a run leaves behind is gone before the next begins.
    "log.segment.delete.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  a directory in memory, where Linux has one
_MIN_FREE_BYTES = 8 << 30


@dataclass(slots=True, kw_only=True)
class BenchClusters:
    """Where contestants run. Make one with `opened`."""

    source: Cluster
    target: Cluster
    guard: ProcessReaper
    directory: Path
    source_bootstrap: str
    _run_numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def fill_source_topic(self, topic: str, workload: Workload, partitions: int) -> int:
        """Make a topic at the source with whole batches of a workload; return its records."""
        return fill_topic(self.source.access(), topic, workload, partitions)

    def warm_up_target(self, workload: Workload, partitions: int) -> None:
        """Let the target do for a while what it will do in a race: append.

        The source gets its turn when its topics are filled.
        """
        fill_topic(self.target.access(), workload.name, workload, partitions)
        self._delete_target_topics()

    def flow(self, topics: Sequence[str], partitions: int, codec: str = "none") -> Flow:
        """A flow that nobody has run yet."""
        return Flow(
            source=self.source_bootstrap,
            target=self.target.bootstrap_servers(),
            topics=tuple(topics),
            partitions=partitions,
            alias=f"run{next(self._run_numbers)}",
            codec=codec,
        )

    @contextmanager
    def running_system(self, who: System, flow: Flow) -> Iterator[SystemProcess]:
        """Start a contestant; however the block ends, it is gone and so are its topics."""
        if who is System.PLAIN_LOOP:  # it has no eyes for topics
            for topic in flow.topics:
                create_topic(self.target.access(), flow.remote_topic(topic), flow.partitions)
        racer = SystemProcess(who, flow, self.directory / f"{flow.alias}-{who}", self.guard)
        try:
            yield racer
        finally:
            racer.kill()
            self._delete_target_topics()

    def delete_source_topics(self, topics: Sequence[str]) -> None:
        """Delete topics of the source."""
        with Admin(self.source.access()) as admin:
            admin.delete_topics(topics)

    def _delete_target_topics(self) -> None:
        """Delete all that a run left."""
        with Admin(self.target.access()) as admin:
            admin.delete_topics(
                [name for name in admin.describe_topics() if not name.startswith("__")]
            )


@contextmanager
def running_clusters(
    guard: ProcessReaper, say: Callable[[str], None], advertised: str | None = None
) -> Iterator[BenchClusters]:
    """Start both clusters, and remove them at the end.

    With `advertised` the source sends its clients there: to whatever stands in front of it.
    """
    directory = Path(tempfile.mkdtemp(prefix="sparkmirror-bench-", dir=_memory_directory()))
    guard.remove_on_exit(directory)
    elsewhere = {"advertised.listeners": f"PLAINTEXT://{advertised}"} if advertised else {}
    specs = [
        ClusterSpec(name="source", heap=HEAP, properties={**PROPERTIES, **elsewhere}),
        ClusterSpec(name="target", heap=HEAP, properties=PROPERTIES),
    ]
    source, target = Cluster.start_all(specs, directory, guard, say)
    try:
        yield BenchClusters(
            source=source,
            target=target,
            guard=guard,
            directory=directory,
            source_bootstrap=advertised or source.bootstrap_servers(),
        )
    finally:
        for cluster in (source, target):
            cluster.remove()


def _memory_directory() -> Path | None:
    """Where brokers are not held up by a disk that others use too: in memory, if there is room."""
    if _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free >= _MIN_FREE_BYTES:
        return _SHARED_MEMORY
    return None
