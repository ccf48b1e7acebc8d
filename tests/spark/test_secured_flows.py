"""Flows over the logins that no tutorial prints, and faults on the way.

All clusters of the file are listeners of two real ones. librdkafka writes and reads all records.
The logins that tutorials print are tested in `tests/spark/tutorials`.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator, Mapping
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
from sparkmirror.model import TopicPartition
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
from tests.support.kafka.partition_log import read_partition_log
from tests.support.processes import RunningProcess
from tests.support.security.java_stores import write_key_store
from tests.support.security.msk_iam_listener import MskIamListener
from tests.support.security.oauth_server import OAuthServer, running_oauth_server
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

FILE = Path(__file__).parent / "secured_flows" / "mm2.properties"
TOPICS = {"west": "clicks", "keycloak": "payments", "msk": "ExampleTopic"}
"""The topic of each source of the file."""
FLOWS = ("west->east", "keycloak->partner", "msk->partner")
"""The flows of the file: jobs of one Spark application."""
FENCES = 3
"""One for a driver that was killed, and some for a busy computer."""
FIRST_PASSWORDS = {"west": "west-secret", "east": "east-secret"}
"""The passwords of the flow from west to east; they change while it copies."""
SOURCE_USERS = {"application": "home-secret", "mirror": FIRST_PASSWORDS["west"]}
TARGET_USERS = {"application": "home-secret", "mirror": FIRST_PASSWORDS["east"]}
"""The test itself logs in as the first one, whose password stays."""
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
"""Added to the file: one broker per cluster, and short intervals."""
PARTITIONS = 2
RECORDS = 300
LOGIN_INTERVAL_S = 1.0
"""Between two looks of the test that each cost handshakes and logins."""
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


def test_records_flow_over_every_protocol_and_login(
    clusters: tuple[Cluster, Cluster],
    oauth_server: OAuthServer,
    msk: MskIamListener,
    tmp_path: Path,
) -> None:
    """A killed driver is a takeover for all flows; then passwords change."""
    source, target = clusters
    topics = sorted(TOPICS.values())
    _create_topics(source, topics)
    _write(source, topics, range(RECORDS))
    addresses = {
        "https://keycloak/token": oauth_server.endpoints.token_url,
        "b-1.msk:9098": msk.address,
    }
    file = _localized_file(source, target, addresses, tmp_path)
    _write_stores(source, target, msk, tmp_path)
    environment = {
        **os.environ,
        "SSL_CERT_FILE": str(tmp_path / "system-cas.pem"),
        **AWS,
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "aws-credentials"),
        "KAFKA_OPTS": " ".join(oauth_jvm_options(oauth_server.endpoints)),
    }
    with running_process(
        [*SPARKMIRROR, "run", str(file)], tmp_path / "run", environment
    ) as program:
        _wait_until_copied(clusters, program)
        _write(source, topics, range(RECORDS, 2 * RECORDS))
        [driver] = program.drivers()
        driver.kill()
        written = _write_until_sessions_are_renewed(clusters, msk, 2 * RECORDS)
        _wait_until_copied(clusters, program)
        _assert_all_flows_run_in_another_driver(program, driver)
        _assert_few_fences(target)
        written = _write_after_a_change_of_passwords(clusters, program, tmp_path, written)
        _wait_until_copied(clusters, program)
        program.stop()
    assert msk.refusals == []
    for label, topic in TOPICS.items():
        copied = _read(target, f"{label}.{topic}")
        assert len(copied) == written
        assert copied == _read(source, topic)


def _assert_all_flows_run_in_another_driver(program: MirrorProcess, killed: RunningProcess) -> None:
    for flow in FLOWS:
        program.wait_for_states(f"{flow}.MirrorSourceConnector", "RUNNING", "RUNNING")
    [driver] = program.drivers()
    assert driver.pid != killed.pid


def _assert_few_fences(target: Cluster) -> None:
    router = target.access().new_router()
    try:
        for label, topic in TOPICS.items():
            for number in range(PARTITIONS):
                found = read_partition_log(router, TopicPartition(f"{label}.{topic}", number))
                assert len(found.marker_offsets) <= FENCES, f"{label}: {found.marker_offsets}"
    finally:
        router.close()


def _write_until_sessions_are_renewed(
    clusters: tuple[Cluster, Cluster], msk: MskIamListener, first: int
) -> int:
    """Write until both brokers, and the IAM listener on a connection of a task, saw a login again.

    Returns how many records each topic has.
    """
    before = [_renewals(cluster) for cluster in clusters]
    msk.renewals_after_fetches = 0
    topics = sorted(TOPICS.values())
    end = first

    def are_renewed() -> bool:
        nonlocal end
        _write(clusters[0], topics, range(end, end + PARTITIONS))
        end += PARTITIONS
        renewed = [_renewals(cluster) for cluster in clusters]
        return msk.renewals_after_fetches > 0 and all(
            now > then for now, then in zip(renewed, before, strict=True)
        )

    wait_until(are_renewed, "sessions to be renewed", SPARK_TIMEOUT_S, LOGIN_INTERVAL_S)
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
    _write(clusters[0], sorted(TOPICS.values()), range(written, written + RECORDS))
    assert not [password for password in passwords.values() if password in program.output]
    return written + RECORDS


def _write_passwords(directory: Path, passwords: Mapping[str, str]) -> None:
    write_properties(directory / "passwords.properties", passwords)


def _renewals(cluster: Cluster) -> int:
    """How often clients of a broker have logged in again on a connection."""
    return cluster.broker(1).log_file.read_text("utf-8", errors="replace").count(RENEWAL)


def _localized_file(
    source: Cluster, target: Cluster, addresses: Mapping[str, str], directory: Path
) -> Path:
    """Copy the file, with the addresses and directories of the test."""
    replacements = {
        "keycloak:9093": source.bootstrap_servers(),
        "partner:9094": target.bootstrap_servers(ListenerProtocol.SSL),
        "west:9093": source.bootstrap_servers(),
        "east:9093": target.bootstrap_servers(),
        **addresses,
        "/home/": f"{directory}/",
    }
    text = FILE.read_text("utf-8") + "".join(f"{key}={value}\n" for key, value in ADDED.items())
    for written, local in replacements.items():
        text = text.replace(written, local)
    file = directory / FILE.name
    file.write_text(text, "utf-8")
    return file


def _write_stores(source: Cluster, target: Cluster, msk: MskIamListener, directory: Path) -> None:
    """Write what the file names: certificates, stores, passwords, AWS credentials."""
    authorities = [_authority(cluster).ca_certificate.read_text() for cluster in (source, target)]
    for name, content in zip(("source-ca.pem", "target-ca.pem"), authorities, strict=True):
        (directory / name).write_text(content)
    (directory / "system-cas.pem").write_text(
        "".join([*authorities, msk.authority.ca_certificate.read_text()])
    )
    _write_passwords(directory, FIRST_PASSWORDS)
    write_key_store(_authority(target), "mirror", directory / "keystore.jks")
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


def _wait_until_copied(clusters: tuple[Cluster, Cluster], program: MirrorProcess) -> None:
    source, target = clusters
    for label, topic in TOPICS.items():
        remote, wanted = f"{label}.{topic}", len(_read(source, topic))
        try:
            has_records = partial(_has_records, program, target, remote, wanted)
            wait_until(has_records, "", SPARK_TIMEOUT_S, LOGIN_INTERVAL_S)
        except AssertionError:
            raise AssertionError(f"{remote} is not copied: {program.output[-3000:]}") from None


def _has_records(program: MirrorProcess, target: Cluster, remote: str, wanted: int) -> bool:
    assert program.is_running(), "the program has ended"
    with Admin(target.access()) as admin:
        if remote not in admin.describe_topics([remote]):
            return False
    return len(_read(target, remote)) >= wanted
