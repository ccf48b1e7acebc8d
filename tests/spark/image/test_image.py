"""The image is built and started: a Connect worker, a dedicated mirror, and any command.

The containers run as the image says, without rights, on a root file system that is read-only, on
real clusters.
"""

from __future__ import annotations

import os
import re
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkmirror.cli.container.entrypoint import USAGE
from sparkmirror.lab.processes.port_registry import PortRegistry
from tests.support.cli.tutorial_files import QUICKSTART_WORKER_FILE
from tests.support.image.builder_tools import no_builder_reason
from tests.support.image.container import (
    WITHOUT_RIGHTS,
    image_config,
    run_to_end,
    running_container,
)
from tests.support.image.container_storage import ContainerStorage, container_storage
from tests.support.rest.rest_client import JSON_HEADERS, RestClient
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

NO_BUILDER = no_builder_reason()
pytestmark = [
    pytest.mark.skipif(NO_BUILDER is not None, reason=NO_BUILDER or ""),
    pytest.mark.timeout(1800),
]
ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "deploy" / "compose"
IMAGE = "sparkmirror:0.1.0"
REPLICATOR_IMAGE = "flinox/mm2-replicator:latest"
MAX_MEGABYTES = 1500
RECORDS = 100
INTERNAL_TOPICS = (
    *("offset.storage", "status.storage", "config.storage"),
    *("checkpoints.topic", "offset-syncs.topic"),
)
CONNECTOR_COUNT = r"^kafka_connect_worker_connector_count(\{.*\})? 1(\.0)?$"
SCRIPTS = [
    f"{directory}/{script}"
    for directory in ("/opt/kafka/bin", "/opt/bitnami/kafka/bin")
    for script in ("connect-distributed.sh", "connect-mirror-maker.sh", "kafka-mirror-maker.sh")
]


@pytest.fixture(scope="module")
def storage() -> Iterator[ContainerStorage]:
    """The storage, with the image of this tree."""
    with container_storage() as opened:
        opened.make_base()
        opened.build(ROOT, ROOT / "deploy" / "docker" / "Dockerfile", IMAGE)
        yield opened


@pytest.fixture
def ports(tmp_path: Path) -> tuple[int, int]:
    """Free ports for REST and metrics."""
    rest, metrics = PortRegistry().claim(2, tmp_path)
    return rest, metrics


def replaced(text: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text, f"{old} is not in {text}"
        text = text.replace(old, new)
    return text


def metrics_text(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return str(answer.read(), "utf-8")


def agent_option(port: int) -> str:
    """An option for a JVM as people have it: an agent for metrics."""
    agent = "/opt/jmx-exporter/jmx_prometheus_javaagent-0.19.0.jar"
    return f"-Xmx256m -javaagent:{agent}={port}:/opt/jmx-exporter/kafka-2_0_0.yml"


def test_image_says_how_it_runs(storage: ContainerStorage) -> None:
    found = image_config(storage, IMAGE)
    assert found["Size"] / 1_000_000 < MAX_MEGABYTES
    config = found["Config"]
    assert config["User"] == "185"
    assert config["WorkingDir"] == "/app/replicator"
    assert config["StopSignal"] in ("SIGTERM", "15")
    assert set(config["ExposedPorts"]) == {"8083/tcp", "9404/tcp"}
    assert config["Labels"]["org.opencontainers.image.version"] == IMAGE.partition(":")[2]
    assert "SPARKMIRROR_METRICS_LISTENER=http://0.0.0.0:9404" in config["Env"]
    health = found["Healthcheck"]["Test"]
    assert health == ["CMD", "python", "-m", "sparkmirror.cli.container.health_check"]


def test_any_command_runs_without_rights(storage: ContainerStorage) -> None:
    """User, shell, ps, Java, Python, and what is not in the image."""
    command = "id -u; ps -o pid=,comm= -p 1; java -version 2>&1 | head -1; sparkmirror --version"
    ran = run_to_end(storage, IMAGE, "/bin/bash", "-c", command)
    assert ran.returncode == 0, ran.stderr
    user, first, java, version = ran.stdout.splitlines()
    assert (user, first.split()) == ("185", ["1", "tini"])
    assert '"17.' in java
    assert version.startswith(f"sparkmirror, version {IMAGE.partition(':')[2]} (compiled)")
    tools = "curl --version && jq --version && openssl version"
    ran = run_to_end(storage, IMAGE, "bash", "-c", tools)
    assert ran.returncode == 0, ran.stderr
    absent = "! command -v pip && ! command -v gcc && ! ls -d /source /wheels /build"
    ran = run_to_end(storage, IMAGE, "bash", "-c", absent)
    assert ran.returncode == 0, ran.stdout


def test_image_works_with_a_user_id_that_it_does_not_know(storage: ContainerStorage) -> None:
    """As OpenShift starts it: any user, group 0."""
    ran = storage.podman("run", "--rm", "--user", "1000650000:0", IMAGE, "sparkmirror", "--help")
    assert "connect-mirror-maker" in ran or "Mirror Kafka clusters" in ran


def test_scripts_are_at_the_paths_of_other_images(storage: ContainerStorage) -> None:
    """Without a file each prints its usage and ends as Kafka's does."""
    loop = f'for script in {" ".join(SCRIPTS)}; do "$script" 2>&1; echo "exit $?"; done'
    ran = run_to_end(storage, IMAGE, "bash", "-c", loop)
    assert re.findall("exit ([0-9]+)", ran.stdout) == ["1", "255", "1"] * 2, ran.stdout


def test_nothing_to_start_is_the_usage(storage: ContainerStorage) -> None:
    ran = run_to_end(storage, IMAGE)
    assert (ran.returncode, ran.stderr) == (1, USAGE)


def quickstart_variables(clusters: MirroredClusters, rest: int) -> dict[str, str]:
    """The variables of the compose file, with the broker and the port of this test."""
    text = (COMPOSE / "000" / "docker-compose.yml").read_text("utf-8")
    service = yaml.safe_load(text)["services"]["connect"]
    lines = "\n".join(service["environment"])
    servers = clusters.source.properties["bootstrap.servers"]
    return dict(
        line.split("=", 1)
        for line in replaced(lines, {"broker:29092": servers, "28082": str(rest)}).split("\n")
    )


def quickstart_connector(clusters: MirroredClusters, topic: str) -> str:
    return replaced(
        (COMPOSE / "000" / "connectors.json").read_text("utf-8"),
        {
            "broker:29092": clusters.source.properties["bootstrap.servers"],
            "broker2:29093": clusters.target.properties["bootstrap.servers"],
            "to_replicate": topic,
        },
    )


def test_worker_starts_from_variables_and_stops_with_0(
    storage: ContainerStorage, mirrored_clusters: MirroredClusters, ports: tuple[int, int]
) -> None:
    rest, metrics = ports
    variables = quickstart_variables(mirrored_clusters, rest)
    variables["KAFKA_HEAP_OPTS"] = agent_option(metrics)
    options = [*WITHOUT_RIGHTS, "--tmpfs", "/etc/kafka-connect", "--tmpfs", "/home/sparkmirror"]
    options += [part for name in variables for part in ("--env", f"{name}={variables[name]}")]
    topic = "to_replicate_in_a_container"
    mirrored_clusters.create_topic(topic)
    mirrored_clusters.write_records(topic, range(RECORDS))
    with running_container(storage, IMAGE, *options) as container:
        container.wait_until_healthy()
        check_process_and_file(container.execute, variables)
        client = RestClient(f"http://127.0.0.1:{rest}", timeout_s=60)
        body = quickstart_connector(mirrored_clusters, topic)
        assert client.request("POST", "/connectors", body, JSON_HEADERS).status == 201
        client.close()
        mirrored_clusters.wait_until_copied(topic, f"source.{topic}")
        assert re.search(CONNECTOR_COUNT, metrics_text(metrics), re.MULTILINE)
        assert container.stop() == 0, container.output
        assert "KAFKA_HEAP_OPTS has no effect" in container.output
        assert "http://0.0.0.0:" in container.output, "the port of the agent is noted"
    mirrored_clusters.assert_copied(topic, f"source.{topic}")


def test_given_command_is_healthy_on_the_port_of_its_own_file(
    storage: ContainerStorage,
    mirrored_clusters: MirroredClusters,
    ports: tuple[int, int],
    tmp_path: Path,
) -> None:
    """A shell starts the script, with a file of any name and a port that is not 8083."""
    rest, metrics = ports
    servers = mirrored_clusters.source.properties["bootstrap.servers"]
    lines = QUICKSTART_WORKER_FILE.replace("broker:29092", servers).replace("28082", str(rest))
    file = tmp_path / "other.properties"
    file.write_text(lines.replace("quickstart", "given-command"), "ascii")
    file.chmod(0o644)
    mount = f"type=bind,source={file},target=/properties/other.properties"
    options = [*WITHOUT_RIGHTS, "--tmpfs", "/home/sparkmirror", "--mount", mount]
    options += ["--env", f"KAFKA_OPTS={agent_option(metrics)}"]
    command = "cd /properties; /opt/bitnami/kafka/bin/connect-distributed.sh other.properties"
    with running_container(
        storage, IMAGE, *options, command=("bash", "-c", f"{command}; exit")
    ) as container:
        container.wait_until_healthy()
        answer = container.execute("curl", "-f", f"http://localhost:{rest}/connectors")
        assert answer == "[]"
        assert "kafka_connect_worker_connector_count" in metrics_text(metrics)


def check_process_and_file(execute: Any, variables: Mapping[str, str]) -> None:
    """The commands of the tutorial: `ps -efww` and `cat` of the written file."""
    processes = execute("/bin/bash", "-c", "ps -efww").splitlines()
    [init] = [line.split() for line in processes if line.split()[1] == "1"]
    assert init[7] == "/usr/bin/tini"
    [worker] = [line for line in processes if line.split()[2] == "1" and "connect-d" in line]
    assert worker.endswith("/etc/kafka-connect/kafka-connect.properties")
    lines = execute("cat", "/etc/kafka-connect/kafka-connect.properties").splitlines()
    assert f"group.id={variables['CONNECT_GROUP_ID']}" in lines
    assert len(lines) == 14, "the lines of the tutorial"


def test_mounted_flows_start_in_the_work_directory(
    storage: ContainerStorage,
    mirrored_clusters: MirroredClusters,
    ports: tuple[int, int],
    tmp_path: Path,
) -> None:
    """The image of the compose file for 004, with its mounts."""
    rest, metrics = ports
    storage.build(COMPOSE / "004", COMPOSE / "004" / "Dockerfile", REPLICATOR_IMAGE)
    file = "${file:/properties/access.properties:%s}"
    topic = "mirrored_by_a_container"
    factors = "".join(f"{name}.replication.factor=1\n" for name in INTERNAL_TOPICS)
    flows = f"""\
clusters=source,target
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
source.bootstrap.servers={file % "SRC_BROKERS"}
target.bootstrap.servers={file % "TGT_BROKERS"}
source->target.enabled=true
source->target.topics={topic}
emit.heartbeats.enabled=false
replication.factor=1
{factors}\
listeners=http://127.0.0.1:{rest}
sparkmirror.metrics.listener=http://127.0.0.1:{metrics}
"""
    access = "".join(
        f"{name}={cluster.properties['bootstrap.servers']}\n"
        for name, cluster in (
            ("SRC_BROKERS", mirrored_clusters.source),
            ("TGT_BROKERS", mirrored_clusters.target),
        )
    )
    options = [*WITHOUT_RIGHTS, "--tmpfs", "/home/sparkmirror"]
    for name, target, text in (
        ("mm2-config.properties", "/app/replicator/config/", flows),
        ("access.properties", "/properties/", access),
    ):
        directory = tmp_path / target.strip("/").replace("/", "-")
        directory.mkdir(mode=0o755)
        (directory / name).write_text(text, "ascii")
        os.chown(directory / name, 185, 185)
        options += ["--mount", f"type=bind,source={directory},target={target}"]
    mirrored_clusters.create_topic(topic)
    mirrored_clusters.write_records(topic, range(RECORDS))
    with running_container(storage, REPLICATOR_IMAGE, *options) as container:
        container.wait_until_healthy()
        mirrored_clusters.wait_until_copied(topic, f"source.{topic}")
        wait_until(
            lambda: f'topic="source.{topic}"' in metrics_text(metrics),
            "the metrics to have the topic",
        )
        status = container.execute("sparkmirror", "status", "--url", f"http://127.0.0.1:{rest}")
        assert "source->target" in status
        assert container.stop() == 0, container.output
    mirrored_clusters.assert_copied(topic, f"source.{topic}")
