"""Three workers share a connector under load, with one fault after the other for many minutes.

SOAK_SEED chooses faults and workers, SOAK_MINUTES how long it lasts (for both delivery modes
together), SOAK_REPORTS where the reports are written.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.network_namespaces import has_namespaces
from tests.support.previous_version import NO_COMMIT, has_previous_version, previous_source
from tests.support.processes import session_processes
from tests.support.spark.standalone_cluster import running_standalone_cluster
from tests.support.spark.worker_cluster import (
    WORKERS,
    ProxiedClusters,
    proxied_clusters,
    running_worker_cluster,
)
from tests.support.spark.worker_faults import HEADER, WorkerFaults, workers_under_load

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("SOAK_SEED") or secrets.randbelow(10**6))
MINUTES = float(os.environ.get("SOAK_MINUTES") or 10)
REPORTS = Path(os.environ.get("SOAK_REPORTS") or Path(__file__).parents[2] / "build" / "soak")
PARTITIONS = TASKS = 6
INTERVAL_S = 0.02
MODES = {"plain": {}, "exactly-once": {"exactly.once.source.support": "enabled"}}
MORE_THAN_THE_FAULTS_S = 3600
"""Longer than the last fault, the comparison and a busy computer take."""

FAULTS: dict[str, Callable[[WorkerFaults, str], None]] = {
    "kill": WorkerFaults.kill,
    "kill with Spark": partial(WorkerFaults.kill, with_spark=True),
    "kill and start": WorkerFaults.kill_and_start_at_once,
    "suspend": WorkerFaults.suspend,
    "cut off": WorkerFaults.cut_off,
    "restart": WorkerFaults.restart,
}


@pytest.fixture(scope="module")
def clusters(reaper: ProcessReaper, lab_directory: Path) -> Iterator[ProxiedClusters]:
    with proxied_clusters(reaper, lab_directory) as started:
        yield started


@pytest.fixture(scope="module")
def separated_clusters(reaper: ProcessReaper, lab_directory: Path) -> Iterator[ProxiedClusters]:
    """Clusters whose workers have networks of their own, if this user can make them."""
    with proxied_clusters(reaper, lab_directory, uses_namespaces=has_namespaces()) as started:
        yield started


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def finish(faults: WorkerFaults, name: str, title: str) -> None:
    """Compare every record, write and print the report."""
    file = REPORTS / f"{name}.md"
    try:
        faults.compare()
    finally:
        faults.write_report(file, title)
        say(f"{faults.compared} records compared; report: {file}")


@pytest.mark.timeout(MINUTES * 60 + MORE_THAN_THE_FAULTS_S)
@pytest.mark.parametrize("mode", MODES)
def test_no_record_is_lost_or_copied_twice_in_a_long_sequence_of_faults(
    separated_clusters: ProxiedClusters, tmp_path: Path, mode: str
) -> None:
    """A rolling restart first, then faults at random."""
    clusters = separated_clusters
    choose = random.Random(f"{SEED} {mode}")
    group = f"g{secrets.token_hex(3)}"
    with running_worker_cluster(clusters, group, tmp_path, MODES[mode]) as cluster:
        cluster.start(*WORKERS)
        with workers_under_load(cluster, PARTITIONS, TASKS, INTERVAL_S) as faults:
            faults.on_row = say
            faults.wait_for_second_epoch()
            cuts = "network namespaces" if clusters.namespaces else "proxies"
            say(f"\nSOAK_SEED={SEED}, {mode}, cut off by {cuts}\n{HEADER}")
            until = faults.began + MINUTES * 60 / len(MODES)
            try:
                for name in WORKERS:
                    faults.restart(name)
                while time.monotonic() < until:
                    FAULTS[choose.choice(list(FAULTS))](faults, choose.choice(WORKERS))
            finally:
                finish(faults, f"faults-{mode}", f"Three workers, {mode}, SOAK_SEED={SEED}")
        for worker in cluster.running.values():
            worker.stop()


@pytest.mark.timeout(MORE_THAN_THE_FAULTS_S)
@pytest.mark.skipif(not has_previous_version(), reason=NO_COMMIT)
@pytest.mark.parametrize("mode", MODES)
def test_workers_of_the_previous_version_are_replaced_one_by_one_and_take_turns_with_this_one(
    clusters: ProxiedClusters, tmp_path: Path, mode: str
) -> None:
    previous = str(previous_source(tmp_path))
    group = f"g{secrets.token_hex(3)}"
    with running_worker_cluster(clusters, group, tmp_path, MODES[mode]) as cluster:
        cluster.start(*WORKERS, python_path=previous)
        with workers_under_load(cluster, PARTITIONS, TASKS, INTERVAL_S) as faults:
            faults.on_row = say
            faults.wait_for_second_epoch()
            say(f"\n{mode}\n{HEADER}")
            try:
                for name in WORKERS:
                    faults.restart(name)
                faults.restart("W1", python_path=previous)
                for name in ("W2", "W3"):
                    faults.stop(name)
                faults.replace("W1")
                faults.replace("W1", previous, is_killed=True)
                faults.replace("W1", is_killed=True)
            finally:
                finish(faults, f"upgrade-{mode}", f"Previous and this version, {mode}")
        for worker in cluster.running.values():
            worker.stop()


@pytest.mark.timeout(MORE_THAN_THE_FAULTS_S)
def test_two_workers_over_a_spark_cluster_lose_a_spark_worker_and_one_of_themselves(
    clusters: ProxiedClusters, reaper: ProcessReaper, tmp_path: Path
) -> None:
    group = f"g{secrets.token_hex(3)}"
    spark_directory = tmp_path / "spark"
    spark_directory.mkdir()
    with running_standalone_cluster(reaper, spark_directory, workers=2) as spark:
        properties = {
            "spark.master": spark.master,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
        }
        with running_worker_cluster(
            clusters, group, tmp_path, properties, is_undivided=True
        ) as cluster:
            cluster.start("W1", "W2")
            with workers_under_load(cluster, 2, 2, INTERVAL_S) as faults:
                faults.on_row = say
                say(f"\ntwo workers over a Spark cluster\n{HEADER}")
                ids = {cluster.worker_id(name): name for name in cluster.running}

                def owner() -> str:
                    return ids[next(iter(cluster.task_owners("W1").values()))]

                def kill_spark_worker() -> None:
                    for process in session_processes(spark.workers[0].pid):
                        process.kill()

                try:
                    faults.observe("a Spark worker is killed", "", kill_spark_worker)
                    faults.observe("a Spark worker is started", "", spark.add_worker)
                    faults.kill(owner(), with_spark=True)
                    faults.kill(owner(), with_spark=True)
                finally:
                    finish(faults, "spark-cluster", "Two workers over a Spark cluster")
            for worker in cluster.running.values():
                worker.stop()
