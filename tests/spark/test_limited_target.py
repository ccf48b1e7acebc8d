"""The mirror of the Event Hubs tutorial, whole, to a service that is not Apache Kafka.

The file is the tutorial's, with `${file:…}`. Replaced are the addresses and the names of topics.
Added are one replica and short intervals. The service stands in front of a broker
(`limited_service`); librdkafka reads what arrived.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.config.files.properties import load_properties
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.properties_file import write_properties
from sparkmirror.wire.net.address import Address
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_mirror_maker,
)
from tests.support.cli.property_files import flow_properties
from tests.support.kafka.bulk_reader import ConsumedRecord, read_partitions
from tests.support.kafka.clusters import SharedCluster
from tests.support.kafka.limited_service import LimitedService
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

FILE = Path(__file__).parents[1] / "tutorials" / "004" / "config" / "mm2-config.properties"
ACCESS = "/properties/access.properties"
RECORDS = 300
IDLE_S = 4.0
"""Longer than the worker's heartbeats are apart, as the limit of a service is."""
SOURCE_CONNECTOR = "source->target.MirrorSourceConnector"
REMARKS = ("so no topic configs are synced", "so no group offsets are synced")
"""One for each API that the service lacks and the mirror would use."""


@pytest.fixture
def service(reaper: ProcessReaper, lab_directory: Path) -> Iterator[LimitedService]:
    """A service in front of a broker of its own."""
    with LimitedService() as service:
        spec = ClusterSpec(
            name="limited",
            fast_start=True,
            properties={"advertised.listeners": f"PLAINTEXT://{service.address}"},
        )
        directory = lab_directory / f"limited-{secrets.token_hex(3)}"
        cluster = Cluster.start(spec, directory, reaper, lambda _: None)
        service.forward_to(Address.parse(cluster.bootstrap_servers()))
        yield service
        cluster.remove()


def _tutorial_file(
    clusters: MirroredClusters, topics: list[str], group: str, directory: Path
) -> dict[str, str]:
    """Return the file of the tutorial for these clusters, and write the file with its secrets."""
    access = write_properties(
        directory / "access.properties",
        {"SRC_BROKERS": clusters.source.bootstrap, "TGT_BROKERS": clusters.target.bootstrap},
    )
    printed = {
        key: value.replace(ACCESS, str(access)).replace("topic1,topic2", ",".join(topics))
        for key, value in load_properties(FILE).mapping.items()
    }
    added = flow_properties(clusters, ("source", "target"), "", group)
    return {
        **{key: value for key, value in added.items() if key not in printed},
        **printed,
        "config.providers": "file",
        "config.providers.file.class": (
            "org.apache.kafka.common.config.provider.FileConfigProvider"
        ),
        "target.producer.max.request.size": "1000000",
    }


def _contents(cluster: SharedCluster, topic: str) -> list[object]:
    read: list[ConsumedRecord] = read_partitions(topic, 2, {"bootstrap.servers": cluster.bootstrap})
    return [(record.partition, record.content) for record in read]


def _partitions(program: MirrorProcess) -> list[dict[str, object]]:
    answer = program.get_json(f"{connector_path(SOURCE_CONNECTOR)}/partitions")
    found: list[dict[str, object]] = answer["partitions"]
    return found


@pytest.mark.soak
def test_the_tutorial_mirrors_to_a_service_that_lacks_much_of_kafka(
    mirrored_clusters: MirroredClusters, service: LimitedService, tmp_path: Path
) -> None:
    target = SharedCluster(name="target", properties={"bootstrap.servers": service.address})
    clusters = MirroredClusters(source=mirrored_clusters.source, target=target)
    mark = secrets.token_hex(3)
    topics, group = [f"topic1-{mark}", f"topic2-{mark}"], f"group-{mark}"
    for topic in topics:
        clusters.create_topic(topic, 2)
        clusters.write_records(topic, range(200), 2)
    clusters.commit_group_offset(group, topics[0], 100)
    file = _tutorial_file(clusters, topics, group, tmp_path)
    with running_mirror_maker(file, tmp_path / "run") as program:
        for topic in topics:
            clusters.wait_until_copied(topic, f"source.{topic}", 2, SPARK_TIMEOUT_S)
        service.change(idle_s=IDLE_S)
        service.lose_next_produce()
        for topic in topics:
            clusters.write_records(topic, range(200, RECORDS), 2)
        wait_until(lambda: service.lost_produce_requests == 1, "an answer to be lost", 60)
        service.cut_connections()
        wait_until(lambda: service.closed_for_idling >= 3, "idle connections to be closed", 60)
        for kind in ("Source", "Checkpoint", "Heartbeat"):
            program.wait_for_states(f"source->target.Mirror{kind}Connector", "RUNNING", "RUNNING")

        def is_caught_up() -> bool:
            return all(
                (one["position"], one["lag"], one["reason"]) == (RECORDS, 0, "")
                for one in _partitions(program)
            )

        wait_until(is_caught_up, "everything to be copied", SPARK_TIMEOUT_S)
        assert {one["delivery"] for one in _partitions(program)} == {"at-least-once"}
        events = program.get_json(f"{connector_path(SOURCE_CONNECTOR)}/events")["events"]
        kinds = [event["kind"] for event in events]
        assert kinds.count("at-least-once") == 1
        wait_until(
            lambda: all(remark in program.output for remark in REMARKS),
            f"one remark for each API that is missing; {program.output}",
            SPARK_TIMEOUT_S,
        )
        service.change(idle_s=None)
        program.stop()
        output = program.output
    assert [output.count(remark) for remark in REMARKS] == [1] * len(REMARKS)
    assert "FAILED" not in output
    assert (service.closed_for_size, service.closed_for_absent_api) == (0, 0)
    for topic in topics:
        assert _contents(target, f"source.{topic}") == _contents(clusters.source, topic)
