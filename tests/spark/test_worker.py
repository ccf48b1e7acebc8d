"""A Connect worker on Spark: requests of an operator, and passwords."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from sparkmirror.lab.properties_file import write_properties
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_worker,
)
from tests.support.cli.property_files import connector_configs, worker_properties
from tests.support.kafka.clusters import SharedCluster
from tests.support.processes import session_processes
from tests.support.spark.mirrored_clusters import MirroredClusters, topic_names
from tests.support.spark.observed_driver import JVM
from tests.support.spark.planted_secrets import FROM_ENVIRONMENT, INLINE, PlantedSecrets
from tests.support.waiting import wait_until

RECORDS = 300
RESIDENT = f"resident-{secrets.token_hex(3)}"
FENCES = 3
"""Of a busy computer, and one for a JVM that is killed."""
USER = "mirror"
CLIENTS = ("", "producer.", "consumer.", "admin.")
MONITORING_VIEWS = ("/status", "/offsets", "/partitions", "/events", "/groups")
VIEWS = ("", "/config", "/tasks", "/tasks-config", *MONITORING_VIEWS)


@pytest.fixture(scope="module")
def target_with_login(
    program_clusters: tuple[Cluster, Cluster], tmp_path_factory: pytest.TempPathFactory
) -> SharedCluster:
    """The target with a login whose password is in a file."""
    password_file = tmp_path_factory.mktemp("password") / "password"
    write_properties(password_file, {"password": program_clusters[1].spec.users[USER]})
    return SharedCluster(
        name="target", properties=login(program_clusters[1], f"${{file:{password_file}:password}}")
    )


@pytest.fixture(scope="module")
def properties(target_with_login: SharedCluster) -> dict[str, str]:
    """The worker's properties, with the login for the target."""
    return worker_properties(target_with_login, f"group-{secrets.token_hex(3)}") | {
        **{
            f"{kind}{key}": value
            for kind in CLIENTS
            for key, value in target_with_login.properties.items()
        },
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedSecrets:
    """The secrets of the worker and of the connectors that a test configures."""
    return PlantedSecrets(tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="module")
def program(
    properties: dict[str, str],
    planted: PlantedSecrets,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MirrorProcess]:
    """A worker on the target, with planted secrets. Its REST API asks for a token."""
    directory = tmp_path_factory.mktemp("worker")
    event_logs = directory / "event-logs"
    event_logs.mkdir()
    with running_worker(
        properties | planted.worker_properties(event_logs), directory, planted.environment()
    ) as started:
        started.authorization = f"Bearer {planted.values['bearer token']}"
        yield started


@pytest.fixture
def spark(mirrored_clusters: MirroredClusters, program: MirrorProcess) -> MirrorProcess:
    """The worker with a connector that stays: Spark runs from one test to the next."""
    wait_until(
        lambda: program.request("GET", "/health").status == HTTPStatus.OK,
        "the worker to be ready",
        SPARK_TIMEOUT_S,
    )
    if RESIDENT not in program.get_json("/connectors"):
        if RESIDENT not in topic_names(mirrored_clusters.source):
            mirrored_clusters.create_topic(RESIDENT)
        config = source_config(mirrored_clusters, RESIDENT, topics=RESIDENT)
        program.call_json("PUT", f"{connector_path(RESIDENT)}/config", config)
    wait_until(
        lambda: len(program.drivers()) == 1, "Spark to start with the connector", SPARK_TIMEOUT_S
    )
    return program


@pytest.fixture
def name(spark: MirrorProcess) -> Iterator[str]:
    """A name for a connector, and a prefix for all its topics. The fixture deletes it."""
    created = new_name()
    yield created
    spark.request("DELETE", connector_path(created))


def assert_resident_copies(clusters: MirroredClusters, program: MirrorProcess) -> None:
    """Assert that RESIDENT copies on, whatever has happened to other connectors."""
    clusters.write_records(RESIDENT, range(RECORDS))
    clusters.wait_until_copied(RESIDENT, f"east.{RESIDENT}", timeout_s=SPARK_TIMEOUT_S)
    program.wait_for_states(RESIDENT, "RUNNING", "RUNNING")
    clusters.assert_copied(RESIDENT, f"east.{RESIDENT}", fences=FENCES)


def new_name() -> str:
    return f"w{secrets.token_hex(3)}"


def stop_and_delete_connectors(program: MirrorProcess) -> None:
    """Stop all connectors, wait for the end of Spark, and delete them."""
    names = program.get_json("/connectors")
    for name in names:
        program.call_json("PUT", f"{connector_path(name)}/stop")
    wait_until(
        lambda: not program.drivers(), "Spark to end with the last connector", SPARK_TIMEOUT_S
    )
    for name in names:
        program.call_json("DELETE", connector_path(name))


def login(cluster: Cluster, password: str) -> dict[str, str]:
    """Return client properties with this password, or with this reference to one."""
    known = cluster.client_properties(ListenerProtocol.SASL_PLAINTEXT, USER, "PLAIN")
    return {key: value.replace(cluster.spec.users[USER], password) for key, value in known.items()}


def source_config(mirrored_clusters: MirroredClusters, name: str, **more: str) -> dict[str, str]:
    """Return the config of a source connector for topics whose names begin with its name."""
    return {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "east",
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": mirrored_clusters.source.bootstrap,
        "target.cluster.bootstrap.servers": mirrored_clusters.target.bootstrap,
        "topics": f"{name}.*",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def test_a_connector_follows_requests_while_it_copies(
    mirrored_clusters: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    """Also one with which the connector copies in transactions."""
    one, two = f"{name}.one", f"{name}.two"
    mirrored_clusters.create_topic(one, 2)
    mirrored_clusters.write_records(one, range(RECORDS), 2)
    [driver] = program.drivers()
    program.call_json(
        "PUT", f"{connector_path(name)}/config", source_config(mirrored_clusters, name)
    )
    mirrored_clusters.wait_until_copied(one, f"east.{one}", 2, SPARK_TIMEOUT_S)
    program.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")

    mirrored_clusters.create_topic(two)
    mirrored_clusters.write_records(two, range(RECORDS))
    mirrored_clusters.wait_until_copied(two, f"east.{two}", timeout_s=SPARK_TIMEOUT_S)
    with Admin(mirrored_clusters.source.access) as admin:
        assert not admin.create_partitions({two: 3})
    mirrored_clusters.write_records(two, range(RECORDS, 2 * RECORDS), 3)
    mirrored_clusters.wait_until_copied(two, f"east.{two}", 3, timeout_s=SPARK_TIMEOUT_S)

    program.call_json("PUT", f"{connector_path(name)}/pause")
    program.wait_for_states(name, "PAUSED", "PAUSED", "PAUSED")
    mirrored_clusters.write_records(one, range(RECORDS, 2 * RECORDS), 2)
    assert_resident_copies(mirrored_clusters, program)
    assert mirrored_clusters.target_record_counts(one, f"east.{one}", 2) == 2 * [RECORDS], (
        "copied while paused"
    )
    program.call_json("PUT", f"{connector_path(name)}/resume")
    program.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
    mirrored_clusters.wait_until_copied(one, f"east.{one}", 2, timeout_s=SPARK_TIMEOUT_S)

    restarted = program.call_json(
        "POST", f"{connector_path(name)}/restart?includeTasks=true&onlyFailed=false"
    )
    assert restarted["name"] == name
    program.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
    mirrored_clusters.write_records(one, range(2 * RECORDS, 3 * RECORDS), 2)
    mirrored_clusters.wait_until_copied(one, f"east.{one}", 2, timeout_s=SPARK_TIMEOUT_S)

    assert [one.pid for one in program.drivers()] == [driver.pid], "both share one Spark"
    mirrored_clusters.assert_copied(one, f"east.{one}", 2, FENCES)
    mirrored_clusters.assert_copied(two, f"east.{two}", 3, FENCES)
    remotes = {f"east.{one}", f"east.{two}"}
    wait_until(
        lambda: set(program.get_json(f"{connector_path(name)}/topics")[name]["topics"]) == remotes,
        "its topics",
    )
    lags = {
        *((one, number, 0) for number in range(2)),
        *((two, number, 0) for number in range(3)),
    }

    def shown() -> set[tuple[str, int, int]]:
        standing = program.get_json(f"{connector_path(name)}/partitions")["partitions"]
        return {(p["topic"], p["partition"], p["lag"]) for p in standing}

    wait_until(lambda: shown() == lags, "no lag to be shown")

    program.call_json("DELETE", connector_path(name))
    # As in Java the status is there until the herder's thread has seen the deletion.
    wait_until(
        lambda: program.request("GET", f"{connector_path(name)}/status").status == 404,
        "the status to be gone",
    )
    assert_resident_copies(mirrored_clusters, program)
    assert [one.pid for one in program.drivers()] == [driver.pid]


def test_offsets_can_be_altered_and_reset_while_a_connector_is_stopped(
    mirrored_clusters: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    topic, remote = f"{name}.t", f"east.{name}.t"
    mirrored_clusters.create_topic(topic)
    mirrored_clusters.write_records(topic, range(RECORDS))
    config = source_config(mirrored_clusters, name)
    program.call_json(
        "POST", "/connectors", {"name": name, "config": config, "initial_state": "STOPPED"}
    )
    program.wait_for_states(name, "STOPPED")
    partition = {"cluster": "east", "partition": 0, "topic": topic}
    wanted = {"offsets": [{"partition": partition, "offset": {"offset": RECORDS - 11}}]}
    answer = program.call_json("PATCH", f"{connector_path(name)}/offsets", wanted)
    assert "altered successfully" in answer["message"]
    assert program.get_json(f"{connector_path(name)}/offsets") == wanted
    program.call_json("PUT", f"{connector_path(name)}/resume")
    wait_until(
        lambda: (
            mirrored_clusters.reverse.source_end_offsets(remote).get(0, 0) >= 10
            and mirrored_clusters.target_record_counts(topic, remote) == [10]
        ),
        "the last ten to be copied",
        SPARK_TIMEOUT_S,
    )
    assert program.request("DELETE", f"{connector_path(name)}/offsets").status == 400, (
        "it is not stopped"
    )
    program.call_json("PUT", f"{connector_path(name)}/stop")
    program.wait_for_states(name, "STOPPED")
    latest = {"offsets": [{"partition": partition, "offset": {"offset": RECORDS - 1}}]}
    # The connector is STOPPED before its tasks have given back their leases, as in Java.
    wait_until(
        lambda: program.get_json(f"{connector_path(name)}/offsets") == latest,
        "the task to write its last position",
    )
    answer = program.call_json("DELETE", f"{connector_path(name)}/offsets")
    assert "reset successfully" in answer["message"]
    assert program.get_json(f"{connector_path(name)}/offsets") == {"offsets": []}
    program.call_json("DELETE", connector_path(name))
    assert mirrored_clusters.target_record_counts(topic, remote) == [10]


def test_a_changed_config_takes_effect(
    mirrored_clusters: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    one, two = f"{name}.one", f"{name}.two"
    for topic in (one, two):
        mirrored_clusters.create_topic(topic)
        mirrored_clusters.write_records(topic, range(RECORDS))
    config = source_config(mirrored_clusters, name, topics=one)
    program.call_json("PUT", f"{connector_path(name)}/config", config)
    mirrored_clusters.wait_until_copied(one, f"east.{one}", timeout_s=SPARK_TIMEOUT_S)
    wider = config | {"topics": f"{one},{two}"}
    assert program.call_json("PUT", f"{connector_path(name)}/config", wider)["config"] == {
        **wider,
        "name": name,
    }
    mirrored_clusters.wait_until_copied(two, f"east.{two}", timeout_s=SPARK_TIMEOUT_S)
    for topic in (one, two):
        mirrored_clusters.assert_copied(topic, f"east.{topic}", fences=FENCES)
    routed = wider | {
        "transforms": "days",
        "transforms.days.type": "org.apache.kafka.connect.transforms.TimestampRouter",
        "transforms.days.timestamp.format": "'day'",
    }
    program.call_json("PUT", f"{connector_path(name)}/config", routed)

    def copies_in_transactions() -> bool:
        views = program.get_json(f"{connector_path(name)}/partitions")["partitions"]
        return [(view["delivery"], view["state"]) for view in views] == [
            ("exactly-once", "leased")
        ] * 2

    # Until then tasks without the transforms may copy.
    wait_until(copies_in_transactions, "the transforms", SPARK_TIMEOUT_S)
    mirrored_clusters.write_records(one, range(RECORDS))
    wait_until(
        lambda: _committed_records(mirrored_clusters.target, f"east.{one}-day") == RECORDS,
        "the records in the topic that the transforms name",
        SPARK_TIMEOUT_S,
    )
    assert _committed_records(mirrored_clusters.target, f"east.{one}") == RECORDS


def _committed_records(cluster: SharedCluster, topic: str) -> int:
    if topic not in topic_names(cluster):
        return 0
    return len(list(read_topic(cluster.access, topic, committed_only=True)))


@pytest.mark.soak
def test_a_killed_jvm_is_replaced(
    mirrored_clusters: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    topic = f"{name}.t"
    mirrored_clusters.create_topic(topic)
    mirrored_clusters.write_records(topic, range(RECORDS))
    config = source_config(mirrored_clusters, name)
    program.call_json("PUT", f"{connector_path(name)}/config", config)
    mirrored_clusters.wait_until_copied(topic, f"east.{topic}", timeout_s=SPARK_TIMEOUT_S)
    [driver] = program.drivers()
    [jvm] = session_processes(driver.pid, JVM)
    jvm.kill()
    mirrored_clusters.write_records(topic, range(RECORDS, 2 * RECORDS))
    assert program.get_json(f"{connector_path(name)}/status")["connector"]["state"] == "RUNNING"
    mirrored_clusters.wait_until_copied(topic, f"east.{topic}", timeout_s=SPARK_TIMEOUT_S)
    program.wait_for_states(name, "RUNNING", "RUNNING")
    mirrored_clusters.assert_copied(topic, f"east.{topic}", fences=FENCES)


def test_the_status_names_an_unreachable_target_which_concerns_no_other_connector(
    mirrored_clusters: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    mirrored_clusters.create_topic(f"{name}.t")
    unreachable = "127.0.0.1:1"
    config = source_config(mirrored_clusters, name) | {
        "target.cluster.bootstrap.servers": unreachable
    }
    program.call_json("PUT", f"{connector_path(name)}/config", config)

    expected = f"west: PLAINTEXT {unreachable}: connection refused; check whether the broker runs"

    def is_named() -> bool:
        status = program.request("GET", f"{connector_path(name)}/status")
        return status.status == 200 and expected in status.json["connector"].get("trace", "")

    wait_until(is_named, "the connector's trace to name side, broker and cause", SPARK_TIMEOUT_S)
    assert_resident_copies(mirrored_clusters, program)


@pytest.mark.runs_last  # it ends Spark, and it searches what the other tests have written
def test_secrets_reach_the_brokers_and_no_log_topic_rest_answer_process_list_or_page_of_spark(
    mirrored_clusters: MirroredClusters,
    program_clusters: tuple[Cluster, Cluster],
    target_with_login: SharedCluster,
    properties: dict[str, str],
    planted: PlantedSecrets,
    spark: MirrorProcess,
) -> None:
    program = spark
    planted.plant_as("file provider", program_clusters[1].spec.users[USER])
    wrong = planted.plant("wrong password")
    mark = secrets.token_hex(3)
    aliases, topic, group = (f"east{mark}", f"west{mark}"), f"orders-{mark}", f"billing-{mark}"
    remote = f"{aliases[0]}.{topic}"
    connectors = connector_configs(
        MirroredClusters(source=mirrored_clusters.source, target=target_with_login),
        aliases,
        topic,
        group,
    )
    refused = connectors[f"{aliases[0]}-Heartbeat"] | {"name": "refused"}
    refused |= {f"target.cluster.{k}": v for k, v in login(program_clusters[1], wrong).items()}
    refused |= {f"producer.override.{k}": v for k, v in login(program_clusters[1], wrong).items()}
    source = connectors[f"{aliases[0]}-Source"]
    source |= planted.connector_properties("source.cluster.")
    inline = connectors[f"{aliases[0]}-Checkpoint"]
    inline |= planted.inline_properties("source.cluster.")
    mirrored_clusters.create_topic(topic)
    mirrored_clusters.write_records(topic, range(RECORDS))
    mirrored_clusters.commit_group_offset(group, topic, RECORDS // 2)
    for name, config in (*connectors.items(), ("refused", refused)):
        program.call_json("PUT", f"{connector_path(name)}/config", config)
    mirrored_clusters.wait_until_copied(topic, remote, timeout_s=SPARK_TIMEOUT_S)
    wait_until(
        lambda: mirrored_clusters.synced_group_offset(group, remote) == RECORDS // 2,
        "the group",
        SPARK_TIMEOUT_S,
    )
    wait_until(lambda: is_refused(program), "the wrong password to be refused", SPARK_TIMEOUT_S)
    planted.plant_as("secret of the control channel", control_secret(program))
    token, program.authorization = (
        program.authorization,
        f"Basic {planted.values['Basic credentials']}",
    )
    assert program.get_json("/connectors")
    program.authorization = token
    answers = rest_answers(program, connectors)
    assert source["connector.class"].encode() in answers[f"GET {aliases[0]}-Source/config"]
    processes = program.processes()
    assert len(processes) > 3, "Spark does not run"
    environments = {f"environment of {one.pid}": one.environment().encode() for one in processes}
    pages = planted.web_ui_pages()
    assert any(b"spark.ssl.keyPassword" in page for page in pages.values()), list(pages)
    stop_and_delete_connectors(program)
    texts = {
        **{f"command of {one.pid}": one.command.encode() for one in processes},
        **pages,
        **topic_contents(mirrored_clusters, properties),
        **file_contents(program.log.parent),
    }
    del texts[str(program.log.parent / "connect-distributed.properties")]  # the operator's own
    for part in ("event-logs", "receipts", "spark-"):
        assert any(part in name for name in texts), part
    assert len(planted.values) > 20
    assert planted.found_in(texts, set(planted.values) - {*INLINE, "wrong password"}) == []
    # What is written into a connector's config is in the config topic, and REST shows it.
    del texts[f"topic {properties['config.storage.topic']}"]
    assert planted.found_in(texts, planted.values) == []
    assert planted.found_in(environments, set(planted.values) - {*FROM_ENVIRONMENT}) == []
    assert planted.found_in(answers, set(planted.values) - {*INLINE}) == []
    shown = {name for name in INLINE if planted.found_in(answers, [name])}
    assert shown == {*INLINE}, "as with Connect"


def control_secret(program: MirrorProcess) -> str:
    """The secret of the control channel, from the file in the driver's own directory."""
    files = {
        Path(found[1]) / "control_endpoint.json"
        for one in program.processes()
        if (found := re.search(r"SPARK_LOCAL_DIRS=([^\0]+)", one.environment()))
    }
    [file] = [file for file in files if file.is_file()]
    return bytes.fromhex(json.loads(file.read_text("utf-8"))["secret"]).decode()


def is_refused(program: MirrorProcess) -> bool:
    status = program.request("GET", "/connectors/refused/status").content.decode()
    return "uthentication" in status


def rest_answers(program: MirrorProcess, connectors: dict[str, dict[str, str]]) -> dict[str, bytes]:
    """All answers about these connectors, and those about `refused` that hold no config."""
    answers = {
        f"GET {name}{view}": program.request("GET", f"{connector_path(name)}{view}").content
        for name in (*connectors, "refused")
        for view in VIEWS
        if name != "refused" or view in MONITORING_VIEWS
    }
    for name, config in connectors.items():
        path = f"/connector-plugins/{config['connector.class']}/config/validate"
        answers[f"PUT {path} {name}"] = program.request("PUT", path, config).content
    return answers


def topic_contents(clusters: MirroredClusters, properties: dict[str, str]) -> dict[str, bytes]:
    """The records of Connect's three topics."""
    return {
        f"topic {name}": b"\n".join(
            (record.key or b"") + b" " + (record.value or b"")
            for record in read_topic(clusters.target.access, name)
        )
        for name in (properties[f"{what}.storage.topic"] for what in ("config", "offset", "status"))
    }


def file_contents(directory: Path) -> dict[str, bytes]:
    """All files of the worker: its log, Spark's logs, receipts."""
    return {str(file): file.read_bytes() for file in directory.rglob("*") if file.is_file()}
