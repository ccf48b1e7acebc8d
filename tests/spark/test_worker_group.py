"""Two workers share the tasks of a source connector, each with its own Spark."""

from __future__ import annotations

import secrets
import signal
from contextlib import ExitStack
from pathlib import Path

from sparkmirror.lab.processes.port_registry import PortRegistry
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_worker,
)
from tests.support.cli.property_files import worker_properties
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

RECORDS = 400
PARTITIONS = 4
FENCES = 6
"""One for each partition of a killed worker, and some for a busy computer."""


def task_owners(asked: MirrorProcess, connector: str) -> dict[int, str]:
    """The workers of the tasks that run, as one worker answers."""
    answer = asked.request("GET", f"{connector_path(connector)}/status")
    if answer.status != 200:
        return {}
    return {
        task["id"]: task["worker_id"] for task in answer.json["tasks"] if task["state"] == "RUNNING"
    }


def test_two_workers_run_one_task_each_and_the_other_one_goes_on_after_a_kill(
    mirrored_clusters: MirroredClusters, tmp_path: Path
) -> None:
    name = f"g{secrets.token_hex(3)}"
    topic, remote = f"{name}.t", f"east.{name}.t"
    mirrored_clusters.create_topic(topic, PARTITIONS)
    mirrored_clusters.write_records(topic, range(RECORDS), PARTITIONS)
    properties = worker_properties(mirrored_clusters.target, name)
    ports = PortRegistry().claim(2, tmp_path)
    ids = [f"127.0.0.1:{port}" for port in ports]
    config = {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "east",
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": mirrored_clusters.source.bootstrap,
        "target.cluster.bootstrap.servers": mirrored_clusters.target.bootstrap,
        "topics": f"{name}\\..*",
        "tasks.max": "2",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
    }
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                running_worker(
                    {**properties, "listeners": f"http://127.0.0.1:{port}"}, tmp_path / str(port)
                )
            )
            for port in ports
        )
        wait_until(
            lambda: all(one.request("GET", "/health").status == 200 for one in (first, second)),
            "both workers to be ready",
            SPARK_TIMEOUT_S,
        )
        second.call_json("PUT", f"{connector_path(name)}/config", config)
        wait_until(
            lambda: sorted(task_owners(first, name).values()) == sorted(ids),
            "one task on each worker",
            SPARK_TIMEOUT_S,
        )
        mirrored_clusters.wait_until_copied(topic, remote, PARTITIONS, timeout_s=SPARK_TIMEOUT_S)
        first.send_signal(signal.SIGKILL)
        mirrored_clusters.write_records(topic, range(RECORDS, 2 * RECORDS), PARTITIONS)
        wait_until(
            lambda: task_owners(second, name) == {0: ids[1], 1: ids[1]},
            "both tasks on the second worker",
            SPARK_TIMEOUT_S,
        )
        mirrored_clusters.wait_until_copied(topic, remote, PARTITIONS, timeout_s=SPARK_TIMEOUT_S)
        second.stop()
    mirrored_clusters.assert_copied(topic, remote, PARTITIONS, fences=FENCES)
