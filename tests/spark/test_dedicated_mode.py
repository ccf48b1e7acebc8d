"""Dedicated mode on Spark: two clusters mirror each other; kafka-mirror-maker.sh copies."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sparkmirror.client import MirrorClient
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache
from sparkmirror.lab.properties_file import write_properties
from sparkmirror.model import TopicPartition
from tests.support.cli.mirror_process import (
    SCRIPTS,
    SPARK_TIMEOUT_S,
    connector_path,
    running_mirror_maker,
    running_process,
    running_worker,
)
from tests.support.cli.property_files import (
    connector_configs,
    flow_properties,
    worker_properties,
)
from tests.support.lab.java_library import running_jvm
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

RECORDS = 200
FENCES = 2
"""For a busy computer, on which a task may miss its reports."""


def test_two_clusters_mirror_each_other_and_java_clients_agree(
    mirrored_clusters: MirroredClusters, tmp_path: Path
) -> None:
    mark = secrets.token_hex(3)
    aliases = east, west = f"east{mark}", f"west{mark}"
    topic, group = f"orders-{mark}", f"billing-{mark}"
    for side in (mirrored_clusters, mirrored_clusters.reverse):
        side.create_topic(topic)
        side.write_records(topic, range(RECORDS))
    mirrored_clusters.commit_group_offset(group, topic, RECORDS // 2)
    file = flow_properties(mirrored_clusters, aliases, topic, group) | {
        f"{west}->{east}.enabled": "true",
        f"{west}->{east}.topics": f"{topic},.*{mark}.{topic}",
        "heartbeats.replication.enabled": "true",
        "topics.exclude": "no-such-topic",
    }
    with running_mirror_maker(file, tmp_path) as program:
        mirrored_clusters.wait_until_copied(topic, f"{east}.{topic}", timeout_s=SPARK_TIMEOUT_S)
        mirrored_clusters.reverse.wait_until_copied(
            topic, f"{west}.{topic}", timeout_s=SPARK_TIMEOUT_S
        )
        wait_until(
            lambda: mirrored_clusters.synced_group_offset(group, f"{east}.{topic}") == RECORDS // 2,
            "the group",
            SPARK_TIMEOUT_S,
        )
        for flow in (f"{east}->{west}", f"{west}->{east}"):
            program.wait_for_states(f"{flow}.MirrorHeartbeatConnector", "RUNNING", "RUNNING")
        connector = f"{east}->{west}.MirrorSourceConnector"
        assert connector in program.get_json("/connectors")

        def lags() -> set[int]:
            standing = program.get_json(f"{connector_path(connector)}/partitions")["partitions"]
            return {one["lag"] for one in standing if one["topic"] == topic}

        wait_until(lambda: lags() == {0}, "no lag to be shown")
        wait_until(
            lambda: _has_upstream(mirrored_clusters, east),
            f"heartbeats of {east} to arrive",
            SPARK_TIMEOUT_S,
        )
        _assert_java_agrees(mirrored_clusters.target.properties, aliases, topic, group)
        program.stop()
    mirrored_clusters.assert_copied(topic, f"{east}.{topic}", fences=FENCES)
    _continue_with_a_worker(mirrored_clusters, aliases, topic, tmp_path / "worker")
    mirrored_clusters.reverse.assert_copied(topic, f"{west}.{topic}", fences=FENCES)
    loops = {name for name in mirrored_clusters.target_topics() if name.count(east) > 1}
    loops |= {name for name in mirrored_clusters.reverse.target_topics() if name.count(west) > 1}
    assert not loops, "records were copied in a loop"


def _continue_with_a_worker(
    mirrored_clusters: MirroredClusters, aliases: tuple[str, str], topic: str, directory: Path
) -> None:
    """A worker has other offsets topics: it finds the last copied record, and copies on."""
    east, _ = aliases
    name = f"{east}-Source"
    mirrored_clusters.write_records(topic, range(RECORDS, RECORDS + 50))
    config = connector_configs(mirrored_clusters, aliases, topic, "none")[name]
    properties = worker_properties(mirrored_clusters.target, f"worker-{east}")
    directory.mkdir()
    with running_worker(properties, directory) as worker:
        worker.call_json("PUT", f"{connector_path(name)}/config", config)
        mirrored_clusters.wait_until_copied(topic, f"{east}.{topic}", timeout_s=SPARK_TIMEOUT_S)

        def event_kinds() -> list[str]:
            return [
                event["kind"]
                for event in worker.get_json(f"{connector_path(name)}/events")["events"]
            ]

        wait_until(lambda: event_kinds() == ["adopted"], "the event of the adoption")
        worker.stop()
    mirrored_clusters.assert_copied(topic, f"{east}.{topic}", fences=FENCES)


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


def _assert_java_agrees(
    properties: Mapping[str, str], aliases: tuple[str, str], topic: str, group: str
) -> None:
    """Java's MirrorClient and ours give the same, correct answers about the target."""
    east, west = aliases
    remote = TopicPartition(f"{east}.{topic}", 0)
    with (
        running_jvm(JarCache().ensure(DEFAULT_VERSION)) as machine,
        MirrorClient(properties) as ours,
    ):
        given = machine.java.util.HashMap()
        for key, value in properties.items():
            given.put(key, value)
        theirs = machine.org.apache.kafka.connect.mirror.MirrorClient(given)
        assert ours.replication_hops(east) == theirs.replicationHops(east) == 1
        wait_until(
            lambda: ours.replication_hops(west) == theirs.replicationHops(west), "the same hops"
        )
        for mine, java_set, expected in (
            (ours.upstream_clusters, theirs.upstreamClusters, east),
            (ours.heartbeat_topics, theirs.heartbeatTopics, "heartbeats"),
            (ours.checkpoint_topics, theirs.checkpointTopics, f"{east}.checkpoints.internal"),
            (ours.remote_topics, theirs.remoteTopics, remote.topic),
            (partial(ours.remote_topics, east), partial(theirs.remoteTopics, east), remote.topic),
        ):
            wait_until(partial(_agree, mine, java_set, expected), f"both to see {expected}")
        timeout = machine.java.time.Duration.ofSeconds(120)
        wait_until(
            lambda: _checkpoint(ours, group, east, remote) == RECORDS // 2, "the group's checkpoint"
        )
        assert _offsets(theirs.remoteConsumerOffsets(group, east, timeout)) == {
            (str(partition), place.offset)
            for partition, place in ours.remote_consumer_offsets(group, east).items()
        }
        theirs.close()


def _agree(mine: Callable[[], AbstractSet[str]], theirs: Callable[[], Any], expected: str) -> bool:
    """Whether both answers are the same and hold the expected name."""
    found = mine()
    return expected in found and found == set(theirs())


def _checkpoint(
    client: MirrorClient, group: str, upstream: str, partition: TopicPartition
) -> int | None:
    place = client.remote_consumer_offsets(group, upstream).get(partition)
    return place.offset if place else None


def _offsets(java_map: Any) -> set[tuple[str, int]]:
    return {(str(one.getKey()), one.getValue().offset()) for one in java_map.entrySet()}
