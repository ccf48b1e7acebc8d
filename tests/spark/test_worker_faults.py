"""Two workers share a connector, each with its own Spark, and lose each other under load.

`test_worker_soak` is the long form, with three of them; the tests in
`tests/brokers/test_worker_group_processes.py` have three without Spark.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.spark.worker_cluster import (
    ProxiedClusters,
    proxied_clusters,
    running_worker_cluster,
)
from tests.support.spark.worker_faults import workers_under_load

log = logging.getLogger(__name__)

PARTITIONS = TASKS = 3
INTERVAL_S = 0.1


@pytest.fixture(scope="module")
def clusters(reaper: ProcessReaper, lab_directory: Path) -> Iterator[ProxiedClusters]:
    with proxied_clusters(reaper, lab_directory) as started:
        yield started


def test_records_are_copied_once_and_in_order_whatever_happens_to_a_worker(
    clusters: ProxiedClusters, tmp_path: Path
) -> None:
    """One worker is killed and started again, one suspended, one cut off, one ends on SIGTERM."""
    group = f"g{secrets.token_hex(3)}"
    with running_worker_cluster(clusters, group, tmp_path, {}) as cluster:
        cluster.start("W1", "W2")
        with workers_under_load(cluster, PARTITIONS, TASKS, INTERVAL_S) as faults:
            faults.on_row = log.info
            faults.kill("W2", with_spark=True)
            suspended, cut_off = cluster.running["W1"], cluster.running["W2"]
            faults.suspend("W1")
            faults.cut_off("W2")
            faults.stop("W1")
            faults.compare()
        for worker in (suspended, cut_off):
            assert "This worker was away for too long" in worker.output
        for worker in cluster.running.values():
            worker.stop()
