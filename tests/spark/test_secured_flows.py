"""Flows over every security protocol and login, from one mm2.properties, with faults on the way.

The clusters of the file are listeners of two real clusters. librdkafka writes and reads all
records.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.sasl_config import oauth_jvm_options
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.wire.net.address import Address
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    SPARKMIRROR,
    MirrorProcess,
    running_process,
)
from tests.support.cli.property_files import LONG_SHUTDOWN, SHORT_INTERVALS, SINGLE_REPLICA
from tests.support.kafka.bulk_reader import ConsumedRecord, read_partitions
from tests.support.security.java_stores import find_keytool, write_key_store
from tests.support.security.msk_iam_listener import MskIamListener
from tests.support.security.oauth_server import OAuthServer, running_oauth_server
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

FILES = Path(__file__).parent / "tutorials" / "secured"
CONNECTION_STRING = (
    "Endpoint=sb://namespace.servicebus.windows.net/;SharedAccessKeyName=mm2;SharedAccessKey=a+b/c="
)
SOURCE_USERS = {"mm2": "home-secret", "mirror": "west-secret"}
TARGET_USERS = {
    "token": "985...",
    "$ConnectionString": CONNECTION_STRING,
    "mirror": "east-secret",
}
AWS_KEY, AWS_SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
AWS = {"AWS_REGION": "us-east-2", "AWS_EC2_METADATA_DISABLED": "true"}
SESSION_MS = "15000"
FLOWS = {
    ("strimzi", "eventstreams"): ("orders",),
    ("onprem", "eventhubs"): ("topic1", "topic2"),
    ("west", "east"): ("clicks",),
    ("keycloak", "partner"): ("payments",),
    ("msk", "partner"): ("ExampleTopic",),
}
"""The topics of each flow."""
SMALL_CLUSTERS = {
    "listeners": "http://127.0.0.1:0",
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    **SINGLE_REPLICA,
    **LONG_SHUTDOWN,
    **SHORT_INTERVALS,
}
"""Added to the file: one broker per cluster, and short intervals."""
PARTITIONS = 2
RECORDS = 300


@pytest.fixture(scope="module")
def oauth_server() -> Iterator[OAuthServer]:
    """Issues the tokens that the source accepts."""
    with running_oauth_server({"mirror": "client-secret"}) as server:
        yield server


@pytest.fixture(scope="module")
def msk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MskIamListener]:
    """The IAM listener of the source."""
    authority = CertificateAuthority.create(tmp_path_factory.mktemp("msk") / "tls")
    with MskIamListener(
        authority, AWS["AWS_REGION"], {AWS_KEY: AWS_SECRET}, session_lifetime_ms=int(SESSION_MS)
    ) as listener:
        yield listener


@pytest.fixture(scope="module")
def clusters(
    reaper: ProcessReaper, lab_directory: Path, oauth_server: OAuthServer, msk: MskIamListener
) -> Iterator[tuple[Cluster, Cluster]]:
    """Source and target, each with one broker and short sessions."""
    properties = {"listener.name.sasl_ssl.connections.max.reauth.ms": SESSION_MS}
    specs = [
        ClusterSpec(
            name="secured-source",
            fast_start=True,
            listeners=(
                ListenerProtocol.SASL_SSL,
                ListenerProtocol.SSL,
                ListenerProtocol.PLAINTEXT,
            ),
            advertised={ListenerProtocol.PLAINTEXT: msk.address},
            users=SOURCE_USERS,
            oauth=oauth_server.endpoints,
            properties=properties,
        ),
        ClusterSpec(
            name="secured-target",
            fast_start=True,
            listeners=(ListenerProtocol.SASL_SSL, ListenerProtocol.SSL),
            mutual_tls=True,
            users=TARGET_USERS,
            properties=properties,
        ),
    ]
    source, target = Cluster.start_all(specs, lab_directory, reaper, log.info)
    msk.forward_to(Address.parse(source.bootstrap_servers(ListenerProtocol.PLAINTEXT)))
    yield source, target
    for cluster in (source, target):
        cluster.remove()


def test_records_flow_over_every_protocol_and_login(
    clusters: tuple[Cluster, Cluster],
    oauth_server: OAuthServer,
    msk: MskIamListener,
    tmp_path: Path,
) -> None:
    source, target = clusters
    _create_topics(source)
    _write(source, range(RECORDS))
    addresses = {
        "https://keycloak/token": oauth_server.endpoints.token_url,
        "b-1.msk:9098": msk.address,
    }
    file = _localized_files(source, target, addresses, tmp_path)
    _write_stores(source, target, msk, tmp_path)
    environment = {
        **os.environ,
        "SSL_CERT_FILE": str(tmp_path / "system-cas.pem"),
        **AWS,
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "aws-credentials"),
        "KAFKA_OPTS": " ".join(oauth_jvm_options(oauth_server.endpoints)),
    }
    command = [*SPARKMIRROR, "run", str(file)]
    with running_process(command, tmp_path / "run", environment) as program:
        _wait_until_copied(clusters, program)
        _write(source, range(RECORDS, 2 * RECORDS))
        os.kill(program.drivers()[0].pid, signal.SIGKILL)
        _write(source, range(2 * RECORDS, 3 * RECORDS))
        _wait_until_copied(clusters, program)
        program.stop()
    assert len(msk.logins) > 0
    assert msk.refusals == []
    for topic, remote in _topics():
        assert _read(target, remote) == _read(source, topic)


def _topics() -> Iterator[tuple[str, str]]:
    """Every topic of the source and its remote topic."""
    for (alias, _), topics in FLOWS.items():
        for topic in topics:
            yield topic, f"{alias}.{topic}"


def _localized_files(
    source: Cluster, target: Cluster, addresses: Mapping[str, str], directory: Path
) -> Path:
    """Copy the tutorial's files, with the addresses and paths of the test."""
    replacements = {
        "my-cluster-kafka-bootstrap:443": source.bootstrap_servers(ListenerProtocol.SSL),
        "broker-0.eventstreams.cloud.ibm.com:9093": target.bootstrap_servers(),
        "kafka:9093": source.bootstrap_servers(),
        "BROKERS=namespace.servicebus.windows.net:9093": f"BROKERS={target.bootstrap_servers()}",
        "keycloak:9093": source.bootstrap_servers(),
        **addresses,
        "partner:9094": target.bootstrap_servers(ListenerProtocol.SSL),
        "west:9093": source.bootstrap_servers(),
        "east:9093": target.bootstrap_servers(),
        "/home/": f"{directory}/",
        "/properties/": f"{directory}/",
    }
    for name in ("mm2.properties", "access.properties"):
        text = (FILES / name).read_text("utf-8")
        if name == "mm2.properties":
            text += "".join(f"{key}={value}\n" for key, value in SMALL_CLUSTERS.items())
        for written, local in replacements.items():
            text = text.replace(written, local)
        (directory / name).write_text(text, "utf-8")
    return directory / "mm2.properties"


def _write_stores(source: Cluster, target: Cluster, msk: MskIamListener, directory: Path) -> None:
    """Write what the files name: certificates, stores, AWS credentials."""
    authorities = [_authority(cluster).ca_certificate.read_text() for cluster in (source, target)]
    for name, content in zip(("source-ca.pem", "target-ca.pem"), authorities, strict=True):
        (directory / name).write_text(content)
    (directory / "system-cas.pem").write_text(
        "".join([*authorities, msk.authority.ca_certificate.read_text()])
    )
    write_key_store(_authority(target), "mirror", directory / "keystore.jks")
    find_keytool().run(  # the command of the tutorial
        *("-import", "-trustcacerts", "-alias", "root", "-file", directory / "source-ca.pem"),
        *("-keystore", directory / "truststore.jks", "-storepass", "password", "-noprompt"),
    )
    (directory / "aws-credentials").write_text(
        f"[mirror]\naws_access_key_id = {AWS_KEY}\naws_secret_access_key = {AWS_SECRET}\n"
    )


def _authority(cluster: Cluster) -> CertificateAuthority:
    return CertificateAuthority(cluster.directory / "tls")


def _create_topics(source: Cluster) -> None:
    with Admin(source.access()) as admin:
        for topic, _ in _topics():
            admin.create_topic(NewTopic(name=topic, partitions=PARTITIONS))


def _client(cluster: Cluster) -> dict[str, str]:
    """The settings of librdkafka for a cluster."""
    user, password = next(iter(cluster.spec.users.items()))
    return {
        "bootstrap.servers": cluster.bootstrap_servers(),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(_authority(cluster).ca_certificate),
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }


def _write(source: Cluster, numbers: range) -> None:
    producer: Any = Producer({**_client(source), "linger.ms": 5})
    for number in numbers:
        for topic, _ in _topics():
            producer.produce(
                topic,
                key=b"key %d" % number,
                value=secrets.token_bytes(100),
                headers={"number": str(number)},
                partition=number % PARTITIONS,
            )
    assert producer.flush(SPARK_TIMEOUT_S) == 0


def _read(cluster: Cluster, topic: str) -> list[tuple[int, tuple[object, ...]]]:
    records: list[ConsumedRecord] = read_partitions(topic, PARTITIONS, settings=_client(cluster))
    return [(record.partition, record.content) for record in records]


def _wait_until_copied(clusters: tuple[Cluster, Cluster], program: MirrorProcess) -> None:
    source, target = clusters
    for topic, remote in _topics():
        wanted = len(_read(source, topic))
        try:
            wait_until(partial(_has_records, program, target, remote, wanted), "", SPARK_TIMEOUT_S)
        except AssertionError:
            raise AssertionError(f"{remote} is not copied: {program.output[-6000:]}") from None


def _has_records(program: MirrorProcess, target: Cluster, remote: str, wanted: int) -> bool:
    assert program.is_running(), "the program has ended"
    with Admin(target.access()) as admin:
        if remote not in admin.describe_topics([remote]):
            return False
    return len(_read(target, remote)) >= wanted
