"""Faults of workers that share a connector while records are written, and how long each lasts.

Every step (a worker is killed; it is started again) ends when all tasks run, evenly on the workers
that are left, and every partition has got a record after that. The report has a row for each step:
when all tasks ran, and the longest time without a record of each partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S, connector_path
from tests.support.kafka.continuous_load import (
    ArrivalTimes,
    ContinuousLoad,
    assert_same_records,
)
from tests.support.spark.worker_cluster import WorkerCluster
from tests.support.waiting import wait_until

HEADER = "| at | fault | worker | all tasks run after | longest pause of each partition |"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One step of a fault."""

    at_s: float
    """Seconds since the beginning of the run."""
    kind: str
    worker: str
    recovered_s: float
    """When all tasks ran again, evenly on the workers that are left."""
    pauses: Mapping[int, float]
    """The longest time without a record, by partition."""

    def __str__(self) -> str:
        pauses = ", ".join(f"{seconds:.1f}" for seconds in self.pauses.values())
        return (
            f"| {self.at_s:.0f} s | {self.kind} | {self.worker} | {self.recovered_s:.1f} s |"
            f" {pauses} s |"
        )


@dataclass(slots=True, kw_only=True)
class WorkerFaults:
    """Workers under load, and the faults that a test makes. All workers run between faults."""

    cluster: WorkerCluster
    tasks: int
    partitions: int
    load: ContinuousLoad
    arrivals: ArrivalTimes
    began: float = field(default_factory=time.monotonic)
    rows: list[FaultRow] = field(default_factory=list)
    on_row: Callable[[str], None] = lambda _line: None
    compared: int = 0
    """How many records were compared at the end."""

    # -- faults ----------------------------------------------------------------------------------

    def kill(self, name: str, *, with_spark: bool = False) -> None:
        """A worker is killed, with its Spark as if its computer died, and started again."""
        kind = "killed with its Spark" if with_spark else "killed"
        self._step(kind, name, lambda: self.cluster.kill(name, with_spark=with_spark))
        self.start(name)

    def kill_and_start_at_once(self, name: str) -> None:
        """A worker is killed and started before the group notices it."""

        def act() -> None:
            self.cluster.kill(name)
            self.cluster.launch(name)

        self._step("killed and started at once", name, act)

    def suspend(self, name: str) -> None:
        """A worker and its Spark are suspended until others have its tasks, and go on."""
        worker = self.cluster.running[name]
        self._step("suspended", name, lambda: self.cluster.suspend(name))
        self._step("resumed", name, lambda: self.cluster.resume(name, worker))

    def cut_off(self, name: str) -> None:
        """A worker loses the brokers until others have its tasks, and finds them again."""
        worker = self.cluster.running[name]
        self._step("cut off", name, lambda: self.cluster.cut_off(name))
        self._step("connected again", name, lambda: self.cluster.reconnect(name, worker))

    def restart(self, name: str, python_path: str = "") -> None:
        """A worker ends on SIGTERM and is started again, from another tree with `python_path`."""
        self.stop(name)
        self.start(name, python_path)

    def stop(self, name: str) -> None:
        """A worker ends on SIGTERM."""
        worker = self.cluster.running.pop(name)
        self._step("stopped", name, worker.stop)

    def replace(self, name: str, python_path: str = "", *, is_killed: bool = False) -> None:
        """A worker ends, killed with its Spark or by SIGTERM, and another tree runs in its place.

        No other worker need run.
        """

        def act() -> None:
            worker = self.cluster.running[name]
            if is_killed:
                self.cluster.kill(name, with_spark=True)
            else:
                worker.stop()
            self.cluster.launch(name, python_path)

        end = "killed" if is_killed else "stopped"
        self._step(f"{end} and replaced by {_version(python_path)}", name, act)

    def start(self, name: str, python_path: str = "") -> None:
        """A worker joins the others."""
        kind = f"started as {_version(python_path)}" if python_path else "started"
        self._step(kind, name, lambda: self.cluster.launch(name, python_path))

    def observe(self, kind: str, name: str, act: Callable[[], object]) -> None:
        """Something else than a worker has a fault."""
        self._step(kind, name, act)

    def _step(self, kind: str, name: str, act: Callable[[], object]) -> None:
        began = time.monotonic()
        act()
        self.cluster.wait_for_shares(self.tasks)
        recovered = time.monotonic()
        self.wait_for_records(recovered)
        row = FaultRow(
            at_s=began - self.began,
            kind=kind,
            worker=name,
            recovered_s=recovered - began,
            pauses=self.arrivals.largest_gaps(began, time.monotonic()),
        )
        self.rows.append(row)
        self.on_row(str(row))

    # -- records ---------------------------------------------------------------------------------

    def wait_for_records(self, since: float) -> None:
        """Wait until every partition has got a record after this moment."""
        wait_until(
            lambda: self.arrivals.have_all_arrived_since(since),
            f"records in every partition; so far {self.arrivals.counts()}",
            SPARK_TIMEOUT_S,
        )

    def wait_for_second_epoch(self) -> None:
        """Wait until the end of the first epoch of every Spark is no pause any more."""
        self.cluster.wait_for_second_epoch()
        self.wait_for_records(time.monotonic())

    def compare(self) -> None:
        """End the load. Every record of the source is at the target once, in order, unchanged."""
        self.load.stop()
        wanted = [self.load.written] * self.partitions
        with suppress(AssertionError):  # the comparison says more
            wait_until(lambda: self.arrivals.counts() == wanted, "", SPARK_TIMEOUT_S)
        clusters, cluster = self.cluster.clusters, self.cluster
        self.compared = assert_same_records(
            {"bootstrap.servers": clusters.source_bootstrap},
            cluster.topic,
            {"bootstrap.servers": clusters.target_bootstrap},
            cluster.remote,
            self.partitions,
        )
        assert self.compared == sum(wanted)

    # -- the report ------------------------------------------------------------------------------

    def write_report(self, file: Path, title: str) -> None:
        """Write every row and what was compared."""
        lines = [
            f"# {title}",
            "",
            HEADER,
            "|---|---|---|---|---|",
            *map(str, self.rows),
            "",
            f"{self.compared} records of {self.partitions} partitions compared on both sides with"
            " librdkafka: each is there once, in order, unchanged."
            if self.compared
            else "The records were not compared.",
        ]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", "utf-8")


@contextmanager
def workers_under_load(
    cluster: WorkerCluster, partitions: int, tasks: int, interval_s: float
) -> Iterator[WorkerFaults]:
    """Create topic and connector on the running workers, and write until the block ends."""
    clusters = cluster.clusters
    with Admin(clusters.source.access()) as admin:
        admin.create_topic(NewTopic(name=cluster.topic, partitions=partitions))
    asked = next(iter(cluster.running.values()))
    config = cluster.connector_config(tasks)
    asked.call_json("PUT", f"{connector_path(cluster.group)}/config", config)
    cluster.wait_for_shares(tasks)
    with (
        ContinuousLoad(clusters.source_bootstrap, cluster.topic, partitions, interval_s) as load,
        ArrivalTimes(clusters.target_bootstrap, cluster.remote, partitions) as arrivals,
    ):
        faults = WorkerFaults(
            cluster=cluster, tasks=tasks, partitions=partitions, load=load, arrivals=arrivals
        )
        faults.wait_for_records(time.monotonic())
        yield faults


def _version(python_path: str) -> str:
    return "the previous version" if python_path else "this version"
