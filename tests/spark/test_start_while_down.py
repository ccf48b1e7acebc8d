"""Dedicated mode on Spark that starts while one of three clusters is down."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S, running_mirror_maker
from tests.support.cli.property_files import flow_properties
from tests.support.kafka.clusters import SharedCluster
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

RECORDS = 100
FENCES = 2
"""For a busy computer, on which a task may miss its reports."""


@pytest.fixture
def third_cluster(reaper: ProcessReaper, lab_directory: Path) -> Iterator[Cluster]:
    """A cluster that the test may stop."""
    directory = lab_directory / f"third-{secrets.token_hex(3)}"
    cluster = Cluster.start(ClusterSpec(name="third", fast_start=True), directory, reaper, log.info)
    yield cluster
    cluster.remove()


def test_the_flow_whose_clusters_are_up_copies_and_the_other_one_follows_when_its_source_starts(
    mirrored_clusters: MirroredClusters, third_cluster: Cluster, tmp_path: Path
) -> None:
    mark = secrets.token_hex(3)
    east, north, west = (f"{name}{mark}" for name in ("east", "north", "west"))
    topic = f"orders-{mark}"
    third = SharedCluster(name=north, properties=third_cluster.client_properties())
    from_north = MirroredClusters(source=third, target=mirrored_clusters.target)
    for side in (mirrored_clusters, from_north):
        side.create_topic(topic)
        side.write_records(topic, range(RECORDS))
    file = flow_properties(mirrored_clusters, (east, west), topic, "none") | {
        "clusters": f"{east}, {north}, {west}",
        f"{north}.bootstrap.servers": third.bootstrap,
        f"{north}->{west}.enabled": "true",
        f"{north}->{west}.topics": topic,
        **{
            f"{flow}.emit.heartbeats.enabled": "false"
            for flow in (f"{east}->{north}", f"{north}->{east}", f"{west}->{east}")
        },
    }
    third_cluster.kill()
    with running_mirror_maker(file, tmp_path) as program:
        mirrored_clusters.wait_until_copied(topic, f"{east}.{topic}", timeout_s=SPARK_TIMEOUT_S)

        def names_north() -> bool:
            health = program.request("GET", "/health").json
            return bool(health["message"].startswith(f"{north}->{west}: "))

        wait_until(names_north, "the health to name the enabled flow that waits")
        third_cluster.start_brokers()
        from_north.wait_until_copied(topic, f"{north}.{topic}", timeout_s=SPARK_TIMEOUT_S)
        for flow in (f"{north}->{west}", f"{west}->{north}"):
            program.wait_for_states(f"{flow}.MirrorHeartbeatConnector", "RUNNING", "RUNNING")

        def is_healthy() -> bool:
            return bool(program.request("GET", "/health").json["status"] == "healthy")

        wait_until(is_healthy, "all flows to be healthy", SPARK_TIMEOUT_S)
        program.stop()
        assert "failed to properly shut down" not in program.output
    mirrored_clusters.assert_copied(topic, f"{east}.{topic}", fences=FENCES)
    from_north.assert_copied(topic, f"{north}.{topic}", fences=FENCES)
