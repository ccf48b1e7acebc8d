"""Tutorial 004: the image runs the flows of its work directory, with secrets from a file.

Replaced words: addresses, `/properties`, and `/app/replicator`, the work directory of the image.
Added to the tutorial's file, which prints five of its lines, are the logins, a listener on a free
port, and one replica for each topic. `docker` links the mounts of `docker run` and runs the entry
point of the image, whose build is another test; `docker-run.sh` is that of `deploy/compose/004`.

Event Hubs is a stand-in with its limits in front of a broker (`limited_service`), which checks the
login. It has the host name of the tutorial and a certificate for it: the programs that the test
starts take the name for this computer. `openssl` gets the address instead. No key sets how large a
request may be, or a codec: the values for Event Hubs are those of its domain alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.net.address import Address
from tests.spark.tutorials.conftest import (
    EVENT_HUBS_CONNECTION_STRING,
    EVENT_STREAMS_SOURCE_KEY,
    authority_of,
    mirrored_without_logins,
    write_system_authorities,
)
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_process,
)
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.bulk_reader import read_partitions
from tests.support.kafka.clusters import SharedCluster, create_topic
from tests.support.kafka.limited_service import LimitedService
from tests.support.kafka.local_hosts import local_hosts_environment
from tests.support.security.host_certificate import issue_host_certificate
from tests.support.spark.mirrored_clusters import MirroredClusters, topic_names
from tests.support.tutorials.containers import wait_until_copied
from tests.support.tutorials.tutorial import TUTORIALS, Tutorial
from tests.support.waiting import wait_until

COMPOSE = TUTORIALS.parents[1] / "deploy" / "compose" / "004"
HOST = "krotondevpoc.servicebus.windows.net"
"""The tutorial's."""
TOPICS = ("topic1", "topic2")
PARTITIONS, RECORDS, LATER_RECORDS = 2, 100, 200
LARGE_BATCH = 2500
"""Records of 1,000 bytes: more than a request to Event Hubs may have."""
MAX_REQUEST_SIZE = 1_000_000
SOURCE_CONNECTOR = connector_path("source->target.MirrorSourceConnector")
FACTORS = "".join(
    f"{name}replication.factor=1\n"
    for name in (
        "",
        "checkpoints.topic.",
        "heartbeats.topic.",
        *(f"{storage}.storage." for storage in ("config", "offset", "status")),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHubs:
    """The stand-in, and the broker behind it."""

    service: LimitedService
    broker: Cluster
    authority: CertificateAuthority

    @property
    def bootstrap(self) -> str:
        """Its address under its host name."""
        return f"{HOST}:{self.service.port}"


@pytest.fixture
def event_hubs(reaper: ProcessReaper, lab_directory: Path, tmp_path: Path) -> Iterator[EventHubs]:
    """A namespace with the login of Event Hubs."""
    authority = CertificateAuthority.create(tmp_path / "event-hubs-tls")
    certificate = issue_host_certificate(authority, HOST)
    with LimitedService(certificate=certificate) as service:
        spec = ClusterSpec(
            name="tutorial-event-hubs",
            fast_start=True,
            listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_PLAINTEXT),
            users={"$ConnectionString": EVENT_HUBS_CONNECTION_STRING},
            advertised={ListenerProtocol.SASL_PLAINTEXT: f"{HOST}:{service.port}"},
        )
        [broker] = Cluster.start_all([spec], lab_directory, reaper, lambda _: None)
        login = broker.bootstrap_servers(ListenerProtocol.SASL_PLAINTEXT)
        service.forward_to(Address.parse(login))
        yield EventHubs(service=service, broker=broker, authority=authority)
        broker.remove()


@pytest.fixture
def source(secured_source: Cluster) -> Cluster:
    """The source with its topics: TLS and a login; librdkafka needs only TLS."""
    access = secured_source.access(ListenerProtocol.PLAINTEXT)
    for topic in TOPICS:
        create_topic(access, topic, PARTITIONS, configs={"max.message.bytes": "4000000"})
    return secured_source


def test_image_mirrors_to_event_hubs_with_secrets_of_a_file(
    source: Cluster, event_hubs: EventHubs, tmp_path: Path
) -> None:
    service = event_hubs.service
    clusters = mirrored_without_logins(source, event_hubs.broker)
    container = tmp_path / "container"
    container.mkdir()
    words = {
        "${file:/properties/": f"${{file:{container}/properties/",
        f"{HOST}:9093": service.address,
    }
    tutorial = Tutorial("004", tmp_path / "home", words)
    tutorial.install("docker")
    authorities = tmp_path / "authorities.pem"
    write_system_authorities(authorities, (authority_of(source), event_hubs.authority))
    hosts = local_hosts_environment((HOST,), tmp_path / "hosts")
    tutorial.environment = {
        **hosts,
        **tutorial.environment,
        "PYTHONPATH": hosts["PYTHONPATH"],
        "CONTAINER": str(container),
        "SSL_CERT_FILE": str(authorities),
    }
    _write_files(tutorial, source.bootstrap_servers(), event_hubs.bootstrap)
    for topic in TOPICS:
        clusters.write_records(topic, range(RECORDS), PARTITIONS)
    _write_large_batches(clusters.source)

    tutorial.take("docker build")
    tutorial.environment["WITHOUT_START"] = "1"
    tutorial.run("docker run --rm -it --hostname mm2-replicator")
    printed = (container / "arguments").read_text("utf-8")
    del tutorial.environment["WITHOUT_START"]
    script = tutorial.take("./docker-run.sh")
    started = ["bash", "-c", f'cd "{tutorial.directory}" && exec {script}']
    with running_process(started, tmp_path / "run", tutorial.environment) as program:
        for topic in TOPICS:
            wait_until_copied(program, clusters, topic, f"source.{topic}", PARTITIONS)
        assert (container / "arguments").read_text("utf-8") == printed
        [mirror] = [one for one in program.processes() if one.pid == program.pid]
        words_of_image = mirror.command.split("/")[-3:]
        command = tutorial.take("connect-mirror-maker.sh")
        assert mirror.command.endswith(command), words_of_image
        _copy_through_faults(program, clusters, service)
        wanted = {
            "heartbeats",
            "source.heartbeats",
            "source.checkpoints.internal",
            *(f"mm2-{what}.source.internal" for what in ("configs", "offsets", "status")),
            *(f"source.{topic}" for topic in TOPICS),
        }
        wait_until(lambda: wanted <= clusters.target_topics(), f"{wanted}", SPARK_TIMEOUT_S)
        assert "mm2-offset-syncs.target.internal" in topic_names(clusters.source)
        assert "CONNECTED" in tutorial.run("openssl s_client")
        _assert_delivery(program)
        program.stop()
    assert tutorial.commands_left == []
    assert EVENT_HUBS_CONNECTION_STRING not in program.output
    assert program.output.count("so no topic configs are synced") == 1
    assert (service.closed_for_size, service.closed_for_absent_api) == (0, 0)
    assert service.refused_for_codec == 0
    assert MAX_REQUEST_SIZE // 2 < service.largest_request <= MAX_REQUEST_SIZE
    for topic in TOPICS:
        copied = _contents(f"source.{topic}", {"bootstrap.servers": clusters.target.bootstrap})
        assert copied == _contents(topic, _client(source))


def _write_large_batches(source: SharedCluster) -> None:
    """Write batches that are too large for a request, and some that are compressed."""
    writer = BatchWriter(source.access)
    try:
        for partition in range(PARTITIONS):
            writer.write_batch(
                TopicPartition(TOPICS[0], partition),
                numbered_records(range(LARGE_BATCH), size=1000),
            )
            for codec in (CompressionType.LZ4, CompressionType.ZSTD):
                writer.write_batch(
                    TopicPartition(TOPICS[1], partition), numbered_records(range(50)), codec
                )
    finally:
        writer.close()


def _copy_through_faults(
    program: MirrorProcess, clusters: MirroredClusters, service: LimitedService
) -> None:
    """Copy more records while the service loses an answer and closes all connections."""
    service.lose_next_produce()
    for topic in TOPICS:
        clusters.write_records(topic, range(RECORDS, LATER_RECORDS), PARTITIONS)
    wait_until(lambda: service.lost_produce_requests == 1, "an answer to be lost", 60)
    service.cut_connections()
    _write_large_batches(clusters.source)
    service.cut_connections()
    for topic in TOPICS:
        wait_until_copied(program, clusters, topic, f"source.{topic}", PARTITIONS)


def _assert_delivery(program: MirrorProcess) -> None:
    """The status says that records arrive at least once, and why, one time."""
    partitions = program.get_json(f"{SOURCE_CONNECTOR}/partitions")["partitions"]
    assert {one["delivery"] for one in partitions} == {"at-least-once"}
    events = program.get_json(f"{SOURCE_CONNECTOR}/events")["events"]
    [reason] = [one["text"] for one in events if one["kind"] == "at-least-once"]
    assert "does not support InitProducerId" in reason


def _client(cluster: Cluster) -> dict[str, str]:
    """The settings of librdkafka for the source."""
    return {
        "bootstrap.servers": cluster.bootstrap_servers(ListenerProtocol.SSL),
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority_of(cluster).ca_certificate),
    }


def _contents(topic: str, settings: dict[str, str]) -> list[object]:
    """What librdkafka reads, in order: partition and content of each record."""
    read = read_partitions(topic, PARTITIONS, settings)
    return [(record.partition, record.content) for record in read]


def _write_files(tutorial: Tutorial, source: str, target: str) -> None:
    """Complete the tutorial's file, fill in the template, and copy the script."""
    home = tutorial.directory
    own = (home / "own" / "logins.properties").read_text("utf-8")
    flows = home / "config" / "mm2-config.properties"
    text = f"{flows.read_text('utf-8')}{own}listeners=http://127.0.0.1:0\n{FACTORS}"
    flows.write_text(text, "utf-8")
    template = COMPOSE / "properties" / "template_access.properties"
    access = {
        "SRC_BROKERS": source,
        "SRC_API_KEY": "token",
        "SRC_API_SECRET": EVENT_STREAMS_SOURCE_KEY,
        "TGT_BROKERS": target,
        "TGT_API_SECRET": EVENT_HUBS_CONNECTION_STRING,
    }
    lines = []
    for line in template.read_text("utf-8").splitlines():
        key, _, value = line.partition("=")
        lines.append(f"{key}={access.get(key, value)}" if value or key in access else line)
    (home / "properties").mkdir()
    (home / "properties" / "access.properties").write_text("\n".join(lines) + "\n", "utf-8")
    shutil.copy(COMPOSE / "docker-run.sh", home / "docker-run.sh")
    assert os.access(home / "docker-run.sh", os.X_OK)
