"""Dedicated mode on Spark: clusters mirror each other; kafka-mirror-maker.sh copies."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sparkmirror.client import MirrorClient
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.properties_file import write_properties
from sparkmirror.model import TopicPartition
from tests.support.cli.mirror_process import (
    SCRIPTS,
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_mirror_maker,
    running_process,
)
from tests.support.cli.property_files import flow_properties
from tests.support.copy.transform_chains import DROP_MARKED, transformed_records
from tests.support.kafka.batch_writer import BatchWriter, priced_records
from tests.support.kafka.clusters import SharedCluster
from tests.support.kafka.partition_log import assert_copied
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

RECORDS = 200
KEPT = RECORDS - len(range(0, RECORDS, 3))
"""How many records the transforms leave."""
FENCES = 2
"""For a busy computer, on which a task may miss its reports."""


@pytest.fixture
def third_cluster(reaper: ProcessReaper, lab_directory: Path) -> Iterator[Cluster]:
    """A cluster that the test may stop."""
    directory = lab_directory / f"third-{secrets.token_hex(3)}"
    cluster = Cluster.start(ClusterSpec(name="third", fast_start=True), directory, reaper, log.info)
    yield cluster
    cluster.remove()


def test_two_clusters_mirror_each_other_and_a_third_one_follows_when_it_starts(
    mirrored_clusters: MirroredClusters, third_cluster: Cluster, tmp_path: Path
) -> None:
    """The third cluster is down when the program starts. Its flow has transforms."""
    mark = secrets.token_hex(3)
    east, west, north = (f"{name}{mark}" for name in ("east", "west", "north"))
    topic, group = f"orders-{mark}", f"billing-{mark}"
    third = SharedCluster(name=north, properties=third_cluster.client_properties())
    from_north = MirroredClusters(source=third, target=mirrored_clusters.target)
    for side in (mirrored_clusters, mirrored_clusters.reverse, from_north):
        side.create_topic(topic)
        side.write_records(topic, range(RECORDS))
    mirrored_clusters.commit_group_offset(group, topic, RECORDS // 2)
    marked = f"marked-{mark}"
    from_north.create_topic(marked)
    with closing(BatchWriter(third.access)) as writer:
        writer.write_batches(TopicPartition(marked, 0), priced_records(range(RECORDS)), batch=7)
    file = flow_properties(mirrored_clusters, (east, west), topic, group) | {
        "clusters": f"{east}, {north}, {west}",
        f"{west}->{east}.enabled": "true",
        f"{west}->{east}.topics": f"{topic},.*{mark}.{topic}",
        f"{north}.bootstrap.servers": third.bootstrap,
        f"{north}->{west}.enabled": "true",
        f"{north}->{west}.topics": f"{topic},{marked}",
        **{f"{north}->{west}.{key}": value for key, value in DROP_MARKED.items()},
        f"{east}->{north}.emit.heartbeats.enabled": "false",
        f"{north}->{east}.emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "true",
        "topics.exclude": "no-such-topic",
    }
    third_cluster.kill()
    with running_mirror_maker(file, tmp_path) as program:
        mirrored_clusters.wait_until_copied(topic, f"{east}.{topic}", timeout_s=SPARK_TIMEOUT_S)
        mirrored_clusters.reverse.wait_until_copied(
            topic, f"{west}.{topic}", timeout_s=SPARK_TIMEOUT_S
        )
        wait_until(
            lambda: _health(program)["message"].startswith(f"{north}->{west}: "),
            "the health to name the enabled flow that waits",
            SPARK_TIMEOUT_S,
        )
        third_cluster.start_brokers()
        wait_until(
            lambda: mirrored_clusters.synced_group_offset(group, f"{east}.{topic}") == RECORDS // 2,
            "the group",
            SPARK_TIMEOUT_S,
        )
        connector = f"{east}->{west}.MirrorSourceConnector"
        assert connector in program.get_json("/connectors")

        def lags() -> set[int]:
            standing = program.get_json(f"{connector_path(connector)}/partitions")["partitions"]
            return {one["lag"] for one in standing if one["topic"] == topic}

        wait_until(lambda: lags() == {0}, "no lag to be shown", SPARK_TIMEOUT_S)
        wait_until(
            lambda: _has_upstream(mirrored_clusters, east),
            f"heartbeats of {east} to arrive",
            SPARK_TIMEOUT_S,
        )
        from_north.wait_until_copied(topic, f"{north}.{topic}", timeout_s=SPARK_TIMEOUT_S)
        wait_until(
            lambda: from_north.target_record_counts(marked, f"{north}.{marked}") == [KEPT],
            "the transformed topic",
            SPARK_TIMEOUT_S,
        )
        flows = ((east, west), (west, east), (north, west), (west, north))
        for source, target in flows:
            flow = f"{source}->{target}"
            program.wait_for_states(f"{flow}.MirrorHeartbeatConnector", "RUNNING", "RUNNING")
        wait_until(
            lambda: bool(_health(program)["status"] == "healthy"),
            "all flows to be healthy",
            SPARK_TIMEOUT_S,
        )
        program.stop()
        assert "failed to properly shut down" not in program.output
    mirrored_clusters.assert_copied(topic, f"{east}.{topic}", fences=FENCES)
    mirrored_clusters.reverse.assert_copied(topic, f"{west}.{topic}", fences=FENCES)
    from_north.assert_copied(topic, f"{north}.{topic}", fences=FENCES)
    [(source_log, target_log)] = from_north.partition_logs(marked, f"{north}.{marked}")
    assert_copied(transformed_records(DROP_MARKED, source_log.records), target_log, fences=FENCES)
    loops = {name for name in mirrored_clusters.target_topics() if name.count(east) > 1}
    loops |= {name for name in mirrored_clusters.reverse.target_topics() if name.count(west) > 1}
    assert not loops, "records were copied in a loop"


def _health(program: MirrorProcess) -> dict[str, str]:
    health: dict[str, str] = program.request("GET", "/health").json
    return health


@pytest.mark.soak
def test_kafka_mirror_maker_sh_copies_to_topics_of_the_same_name(
    mirrored_clusters: MirroredClusters, tmp_path: Path
) -> None:
    topic = f"legacy-{secrets.token_hex(3)}"
    mirrored_clusters.create_topic(topic, 2)
    mirrored_clusters.write_records(topic, range(RECORDS), 2)
    consumer = {"bootstrap.servers": mirrored_clusters.source.bootstrap, "group.id": topic}
    producer = {"bootstrap.servers": mirrored_clusters.target.bootstrap}
    command = [
        str(SCRIPTS / "kafka-mirror-maker.sh"),
        *("--consumer.config", str(write_properties(tmp_path / "consumer", consumer))),
        *("--producer.config", str(write_properties(tmp_path / "producer", producer))),
        *("--whitelist", topic, "--num.streams", "2"),
    ]
    with _occupied_port(8083), running_process(command, tmp_path / "run") as program:
        mirrored_clusters.wait_until_copied(topic, topic, 2, SPARK_TIMEOUT_S)
        assert "source->target.MirrorSourceConnector" in program.get_json("/connectors")
        program.stop()
    mirrored_clusters.assert_copied(topic, topic, 2, FENCES)


@contextmanager
def _occupied_port(port: int) -> Iterator[None]:
    """Occupy a port, as another Connect worker on the same computer does."""
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError:
        yield  # another program has the port
        return
    with listener:
        yield


def _has_upstream(mirrored_clusters: MirroredClusters, upstream: str) -> bool:
    with MirrorClient(mirrored_clusters.target.properties) as client:
        return client.replication_hops(upstream) == 1
