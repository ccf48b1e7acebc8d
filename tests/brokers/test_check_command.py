"""`sparkmirror check` on a cluster with TLS, logins and an authorizer. It is both sides."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from sparkmirror.lab.cluster.sasl_config import client_jaas_config
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache
from sparkmirror.lab.properties_file import write_properties
from tests.support.cli.command_line import CommandLine, CommandResult
from tests.support.kafka.clusters import create_topic
from tests.support.lab.java_library import running_jvm

TOPIC = "checked.orders"
TLS = ListenerProtocol.SASL_SSL
WRONG_PASSWORD = client_jaas_config("SCRAM-SHA-512", "judy", "guessed")


@pytest.fixture(scope="module")
def cluster(cluster_with_authorizer: Cluster) -> Cluster:
    """Alice may do everything. No other file uses judy, who may do nothing."""
    create_topic(cluster_with_authorizer.access(user="alice"), TOPIC)
    return cluster_with_authorizer


def dedicated_file(cluster: Cluster, path: Path, user: str, **changes: str) -> Path:
    """Write an mm2.properties with one flow between two aliases of the cluster."""
    client = {**cluster.client_properties(TLS, user), **changes}
    sides = {f"{alias}.{key}": value for alias in ("a", "b") for key, value in client.items()}
    flow = {"clusters": "a,b", "a->b.enabled": "true", "a->b.topics": TOPIC}
    return write_properties(path, {**sides, **flow, "emit.heartbeats.enabled": "false"})


def check(*arguments: str) -> CommandResult:
    return CommandLine({"COLUMNS": "200"}).run("check", *arguments)


def test_a_principal_with_all_rights_passes_and_the_report_describes_the_cluster(
    cluster: Cluster, tmp_path: Path
) -> None:
    file = dedicated_file(cluster, tmp_path / "mm2.properties", "alice")
    result = check(str(file))
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "a start would succeed" in result.stdout
    for text in ("SASL_SSL, SCRAM-SHA-512 as alice", "Kafka 4.1 or newer", "round trip", "TLSv1.3"):
        assert text in result.stdout
    assert "valid until" in result.stdout
    assert "secret-a" not in result.stdout + result.stderr
    answer = json.loads(check(str(file), "--format", "json").stdout)
    assert answer["good"]
    assert abs(answer["connections"][0]["clock_difference_s"]) < 60
    assert {right["granted"] for one in answer["connections"] for right in one["rights"]} >= {True}


def test_the_printed_kafka_acls_lines_grant_exactly_what_a_flow_lacks(
    cluster: Cluster, tmp_path: Path
) -> None:
    file = dedicated_file(cluster, tmp_path / "mm2.properties", "judy")
    before = check(str(file), "--no-acls")
    assert before.exit_code == 2
    for text in (
        f"Read, Describe, DescribeConfigs on topic {TOPIC} (",
        "Read, Write, Create, Describe, DescribeConfigs on topic mm2-configs.a.internal (",
        "Read, Describe on group a-mm2 (",
        "Write, Describe on transactional-id a-mm2-MirrorSourceConnector-* (fences older tasks)",
    ):
        assert text in before.stdout, before.stdout
    admin = write_properties(tmp_path / "admin.properties", cluster.client_properties(TLS, "alice"))
    answer = json.loads(check(str(file), "--format", "json").stdout)
    lines = {line for one in answer["connections"] for line in one["kafka_acls"]}
    run_kafka_acls([line.replace("admin.properties", str(admin)) for line in sorted(lines)])
    after = check(str(file), "--no-acls")
    assert after.exit_code == 0, after.stdout + after.stderr
    assert " 0 missing" in after.stdout


def run_kafka_acls(lines: list[str]) -> None:
    """Run the main class of the tool once for each line. It ends its JVM if it fails."""
    with running_jvm(JarCache().ensure(DEFAULT_VERSION)) as packages:
        for line in lines:
            tool, *arguments = shlex.split(line)
            assert tool == "kafka-acls.sh"
            strings = packages.java.lang.reflect.Array.newInstance(
                packages.java.lang.Class.forName("java.lang.String"), len(arguments)
            )
            for index, argument in enumerate(arguments):
                strings[index] = argument
            packages.org.apache.kafka.tools.AclCommand.main(strings)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"sasl.jaas.config": WRONG_PASSWORD}, ".sasl.jaas.config"),
        ({"bootstrap.servers": "127.0.0.1:1"}, "connection refused"),
        ({"security.protocol": "SASL_PLAINTEXT"}, ".security.protocol"),
    ],
    ids=["password", "port", "protocol"],
)
def test_a_connection_that_fails_is_named_with_its_cause(
    cluster: Cluster, tmp_path: Path, changes: dict[str, str], text: str
) -> None:
    file = dedicated_file(cluster, tmp_path / "mm2.properties", "judy", **changes)
    result = check(str(file))
    assert result.exit_code in (1, 2)
    assert text in result.stdout + result.stderr


def test_a_worker_file_and_connectors_are_checked_too(cluster: Cluster, tmp_path: Path) -> None:
    client = cluster.client_properties(TLS, "alice")
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    worker = {
        **client,
        **{f"producer.{key}": value for key, value in client.items()},
        "group.id": "connect",
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "status.storage.topic": "connect-status",
        "key.converter": converter,
        "value.converter": converter,
    }
    file = write_properties(tmp_path / "worker.properties", worker)
    result = check(str(file))
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "the worker's cluster" in result.stdout
    connector = {
        "name": "source",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "topics": TOPIC,
        **{f"source.cluster.{key}": value for key, value in client.items()},
        **{f"target.cluster.{key}": value for key, value in client.items()},
    }
    document = tmp_path / "connector.json"
    document.write_text(json.dumps(connector))
    result = check(str(document), "--worker", str(file))
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "producer of the worker" in result.stdout


def test_a_file_with_faults_is_refused_with_the_table_of_config_validate(tmp_path: Path) -> None:
    file = write_properties(tmp_path / "mm2.properties", {"clusters": "a,b", "tasks.max": "two"})
    result = check(str(file))
    assert result.exit_code == 1
    assert "tasks.max" in result.stderr
