"""Flows over every security protocol and login, with the files of tutorials, and faults on the way.

One file has the logins that no tutorial prints. `make soak` also runs each file of
`tutorials/eventstreams` and `tutorials/eventhubs` as its tutorial prints it. Replaced are
addresses, directories, and in two files the labels of clusters, because all files call their
clusters source and target. Added are ADDED and EVENT_HUBS_ACCESS. All clusters are listeners of two
real ones. librdkafka writes and reads all records.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.sasl_config import oauth_jvm_options
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.properties_file import write_properties
from sparkmirror.wire.net.address import Address
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    SPARKMIRROR,
    MirrorProcess,
    running_process,
)
from tests.support.cli.property_files import LONG_SHUTDOWN, SHORT_INTERVALS, SINGLE_REPLICA
from tests.support.kafka.admin_operations import set_broker_log_level
from tests.support.kafka.bulk_reader import ConsumedRecord, read_partitions
from tests.support.security.java_stores import find_keytool, write_key_store
from tests.support.security.msk_iam_listener import MskIamListener
from tests.support.security.oauth_server import OAuthServer, running_oauth_server
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

FILES = Path(__file__).parent / "tutorials"
CONNECTION_STRING = (
    "Endpoint=sb://namespace.servicebus.windows.net/;SharedAccessKeyName=mm2;SharedAccessKey=a+b/c="
)
FIRST_PASSWORDS = {"west": "west-secret", "east": "east-secret"}
"""The passwords of the flow from west to east; they change while it copies."""
SOURCE_USERS = {"mm2": "home-secret", "mirror": FIRST_PASSWORDS["west"], "token": "985..."}
TARGET_USERS = {"$ConnectionString": CONNECTION_STRING, "mirror": FIRST_PASSWORDS["east"]}
AWS_KEY, AWS_SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
AWS = {"AWS_REGION": "us-east-2", "AWS_EC2_METADATA_DISABLED": "true"}
SESSION_MS = "8000"
ADDED = {
    "listeners": "http://127.0.0.1:0",
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "emit.heartbeats.enabled": "false",
    **SINGLE_REPLICA,
    **LONG_SHUTDOWN,
    **SHORT_INTERVALS,
}
"""Added to every file: one broker per cluster, and short intervals."""
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_ACCESS = "${file:/properties/access.properties"
EVENT_HUBS_ACCESS = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "source.security.protocol": "SASL_SSL",
    "source.sasl.mechanism": "PLAIN",
    "source.sasl.jaas.config": (
        f'{_LOGIN} username="{_ACCESS}:SRC_USER}}" password="{_ACCESS}:SRC_PASSWORD}}";'
    ),
    "target.security.protocol": "SASL_SSL",
    "target.sasl.mechanism": "PLAIN",
    "target.sasl.jaas.config": (
        f'{_LOGIN} username="$ConnectionString" password="{_ACCESS}:TGT_CONNECTION_STRING}}";'
    ),
}
"""What the tutorial for Event Hubs has in its file and does not print."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file for `sparkmirror run`, and the topics that its flows copy."""

    name: str
    topics: Mapping[str, tuple[str, ...]]
    """Topics by the label of their cluster."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Replaced labels."""
    added: Mapping[str, str] = field(default_factory=dict)


TUTORIAL_FILES = (
    File(name="eventstreams/strimzi-mm2.properties", topics={"source": ("orders",)}),
    File(
        name="eventstreams/mirror-maker.properties",
        topics={"cloud": ("orders",)},
        labels={"source": "cloud", "target": "local"},
    ),
    File(
        name="eventhubs/mm2-config.properties",
        topics={"onprem": ("topic1", "topic2")},
        labels={"source": "onprem", "target": "eventhubs"},
        added=EVENT_HUBS_ACCESS,
    ),
)
EVERY_LOGIN_FILE = File(
    name="secured/mm2.properties",
    topics={"west": ("clicks",), "keycloak": ("payments",), "msk": ("ExampleTopic",)},
)
PARTITIONS = 2
RECORDS = 300
SASL_AUTHENTICATOR = "org.apache.kafka.common.security.authenticator.SaslServerAuthenticator"
RENEWAL = "Beginning re-authentication"
"""What a broker logs at level DEBUG."""


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
            listeners=(
                ListenerProtocol.SASL_SSL,
                ListenerProtocol.SSL,
                ListenerProtocol.PLAINTEXT,
            ),
            mutual_tls=True,
            users=TARGET_USERS,
            properties=properties,
        ),
    ]
    source, target = Cluster.start_all(specs, lab_directory, reaper, log.info)
    msk.forward_to(Address.parse(source.bootstrap_servers(ListenerProtocol.PLAINTEXT)))
    for cluster in (source, target):
        set_broker_log_level(cluster.access(), 1, SASL_AUTHENTICATOR, "DEBUG")
    yield source, target
    for cluster in (source, target):
        cluster.remove()


@pytest.mark.parametrize(
    "files",
    [
        pytest.param((EVERY_LOGIN_FILE,), id="every login"),
        pytest.param(TUTORIAL_FILES, id="tutorials", marks=pytest.mark.soak),
    ],
)
def test_records_flow_over_every_protocol_and_login(
    files: tuple[File, ...],
    clusters: tuple[Cluster, Cluster],
    oauth_server: OAuthServer,
    msk: MskIamListener,
    tmp_path: Path,
) -> None:
    source, target = clusters
    topics = _source_topics(files)
    _create_topics(source, topics)
    _write(source, topics, range(RECORDS))
    addresses = {
        "https://keycloak/token": oauth_server.endpoints.token_url,
        "b-1.msk:9098": msk.address,
    }
    written_files = _localized_files(files, source, target, addresses, tmp_path)
    _write_stores(source, target, msk, tmp_path)
    environment = {
        **os.environ,
        "SSL_CERT_FILE": str(tmp_path / "system-cas.pem"),
        **AWS,
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "aws-credentials"),
        "KAFKA_OPTS": " ".join(oauth_jvm_options(oauth_server.endpoints)),
    }
    with ExitStack() as stack:
        programs = [
            stack.enter_context(
                running_process(
                    [*SPARKMIRROR, "run", str(file)], tmp_path / f"run-{number}", environment
                )
            )
            for number, file in enumerate(written_files)
        ]
        _wait_until_copied(files, clusters, programs)
        _write(source, topics, range(RECORDS, 2 * RECORDS))
        os.kill(programs[0].drivers()[0].pid, signal.SIGKILL)
        written = _write_until_sessions_are_renewed(files, clusters, msk, 2 * RECORDS)
        _wait_until_copied(files, clusters, programs)
        if files == (EVERY_LOGIN_FILE,):
            written = _write_after_a_change_of_passwords(clusters, programs[0], tmp_path, written)
            _wait_until_copied(files, clusters, programs)
        with ThreadPoolExecutor(len(programs)) as stops:
            list(stops.map(MirrorProcess.stop, programs))
    assert msk.refusals == []
    for topic, remote in _topics(files):
        copied = _read(target, remote)
        assert len(copied) == written
        assert copied == _read(source, topic)


def _write_until_sessions_are_renewed(
    files: tuple[File, ...], clusters: tuple[Cluster, Cluster], msk: MskIamListener, first: int
) -> int:
    """Write until both brokers, and the IAM listener on a connection of a task, saw a login again.

    The IAM listener counts if a file uses it.

    Returns how many records each topic has.
    """
    before = [_renewals(cluster) for cluster in clusters]
    msk.renewals_after_fetches = 0
    uses_msk = any("msk" in file.topics for file in files)
    topics = _source_topics(files)
    end = first

    def are_renewed() -> bool:
        nonlocal end
        _write(clusters[0], topics, range(end, end + PARTITIONS))
        end += PARTITIONS
        renewed = [_renewals(cluster) for cluster in clusters]
        return (msk.renewals_after_fetches > 0 or not uses_msk) and all(
            now > then for now, then in zip(renewed, before, strict=True)
        )

    wait_until(are_renewed, "sessions to be renewed", SPARK_TIMEOUT_S)
    _write(clusters[0], topics, range(end, end + RECORDS))
    return end + RECORDS


def _write_after_a_change_of_passwords(
    clusters: tuple[Cluster, Cluster], program: MirrorProcess, directory: Path, written: int
) -> int:
    """Change the passwords of a flow, wait until its connector has restarted, and write more.

    Returns how many records each topic has.
    """
    passwords = {label: f"second-{password}" for label, password in FIRST_PASSWORDS.items()}
    for cluster, password in zip(clusters, passwords.values(), strict=True):
        with Admin(cluster.access()) as admin:
            admin.alter_user_scram_credentials({"mirror": password})
    _write_passwords(directory, passwords)
    wait_until(
        lambda: "values of its config have changed" in program.output,
        "the connector to restart",
        SPARK_TIMEOUT_S,
    )
    _write(clusters[0], _source_topics((EVERY_LOGIN_FILE,)), range(written, written + RECORDS))
    assert not [password for password in passwords.values() if password in program.output]
    return written + RECORDS


def _write_passwords(directory: Path, passwords: Mapping[str, str]) -> None:
    write_properties(directory / "passwords.properties", passwords)


def _renewals(cluster: Cluster) -> int:
    """How often clients of a broker have logged in again on a connection."""
    return cluster.broker(1).log_file.read_text("utf-8", errors="replace").count(RENEWAL)


def _topics(files: tuple[File, ...]) -> Iterator[tuple[str, str]]:
    """Every topic of the source and its remote topics."""
    for file in files:
        for label, topics in file.topics.items():
            for topic in topics:
                yield topic, f"{label}.{topic}"


def _source_topics(files: tuple[File, ...]) -> list[str]:
    return sorted({topic for topic, _ in _topics(files)})


def _localized_files(
    files: tuple[File, ...],
    source: Cluster,
    target: Cluster,
    addresses: Mapping[str, str],
    directory: Path,
) -> list[Path]:
    """Copy the files, with the labels, addresses and directories of the test."""
    replacements = {
        r"my-cluster-kafka-bootstrap\S*:443": source.bootstrap_servers(ListenerProtocol.SSL),
        r"broker-\S*\.eventstreams\.cloud\.ibm\.com:9093": source.bootstrap_servers(),
        "kafka1:9092,kafka2:9093,kafka3:9094": target.bootstrap_servers(ListenerProtocol.PLAINTEXT),
        "SRC_BROKERS=kafka:9093": f"SRC_BROKERS={source.bootstrap_servers()}",
        "TGT_BROKERS=namespace.*": f"TGT_BROKERS={target.bootstrap_servers()}",
        "keycloak:9093": source.bootstrap_servers(),
        "partner:9094": target.bootstrap_servers(ListenerProtocol.SSL),
        "west:9093": source.bootstrap_servers(),
        "east:9093": target.bootstrap_servers(),
        **{re.escape(written): local for written, local in addresses.items()},
        "/home/": f"{directory}/",
        "/properties/": f"{directory}/",
    }

    def localized(text: str) -> str:
        for written, local in replacements.items():
            text = re.sub(written, local, text)
        return text

    access = (FILES / "eventhubs" / "access.properties").read_text("utf-8")
    (directory / "access.properties").write_text(localized(access), "utf-8")
    written = []
    for file in files:
        text = (FILES / file.name).read_text("utf-8")
        added = "".join(f"{key}={value}\n" for key, value in {**file.added, **ADDED}.items())
        for label, replacement in file.labels.items():
            text = re.sub(rf"\b{label}\b", replacement, text)
            added = re.sub(rf"^{label}\.", f"{replacement}.", added, flags=re.MULTILINE)
        written.append(directory / Path(file.name).name)
        written[-1].write_text(localized(text + added), "utf-8")
    return written


def _write_stores(source: Cluster, target: Cluster, msk: MskIamListener, directory: Path) -> None:
    """Write what the files name: certificates, stores, passwords, AWS credentials."""
    authorities = [_authority(cluster).ca_certificate.read_text() for cluster in (source, target)]
    for name, content in zip(("source-ca.pem", "target-ca.pem"), authorities, strict=True):
        (directory / name).write_text(content)
    (directory / "system-cas.pem").write_text(
        "".join([*authorities, msk.authority.ca_certificate.read_text()])
    )
    _write_passwords(directory, FIRST_PASSWORDS)
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


def _create_topics(source: Cluster, topics: list[str]) -> None:
    with Admin(source.access()) as admin:
        for topic in topics:
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


def _write(source: Cluster, topics: list[str], numbers: range) -> None:
    producer: Any = Producer({**_client(source), "linger.ms": 5})
    for number in numbers:
        for topic in topics:
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


def _wait_until_copied(
    files: tuple[File, ...], clusters: tuple[Cluster, Cluster], programs: list[MirrorProcess]
) -> None:
    source, target = clusters
    for topic, remote in _topics(files):
        wanted = len(_read(source, topic))
        try:
            wait_until(partial(_has_records, programs, target, remote, wanted), "", SPARK_TIMEOUT_S)
        except AssertionError:
            outputs = "\n".join(program.output[-3000:] for program in programs)
            raise AssertionError(f"{remote} is not copied: {outputs}") from None


def _has_records(programs: list[MirrorProcess], target: Cluster, remote: str, wanted: int) -> bool:
    assert all(program.is_running() for program in programs), "a program has ended"
    with Admin(target.access()) as admin:
        if remote not in admin.describe_topics([remote]):
            return False
    return len(_read(target, remote)) >= wanted
