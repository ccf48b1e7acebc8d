"""Tutorial 000, typed from its first command to its last.

Replaced words: the addresses of the brokers, the directory `/etc/kafka-connect`, the port of the
worker (`curl` reaches it under the port of the tutorial), and the pause of the loop that writes
random numbers: each round starts a Java process, also while Spark starts. Compose's brokers are two
clusters with one broker each and an authorizer; its service `connect` is the entry point of the
image with the environment of the tutorial's file. `docker exec` is a shell of this computer. The
topics have the names of the tutorial. The brokers run Kafka 4; those of the tutorial, Kafka 2.8,
are in `tests/brokers/test_broker_versions.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from sparkmirror.cluster.admin import Admin
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S
from tests.support.spark.mirrored_clusters import MirroredClusters, topic_names
from tests.support.tutorials.containers import (
    free_ports,
    running_container,
    running_terminal,
    wait_until_copied,
)
from tests.support.tutorials.tutorial import Tutorial
from tests.support.waiting import wait_until

TOPIC, REMOTE = "to_replicate", "source.to_replicate"
PORT = "28082"
NUMBERS = 3
"""How many random numbers the consumer must print."""


def test_quickstart_with_one_worker_and_one_connector(
    single_broker_clusters: MirroredClusters, kafka_tools: Path, tmp_path: Path
) -> None:
    clusters = single_broker_clusters
    [port] = free_ports(1, tmp_path)
    words = {
        "broker:29092": clusters.source.bootstrap,
        "broker2:29093": clusters.target.bootstrap,
        "/etc/kafka-connect": str(tmp_path / "etc"),
        "sleep 1;": "sleep 5;",
    }
    tutorial = Tutorial("000", tmp_path / "home", words, {int(PORT): port})
    tutorial.environment["PATH"] += f"{os.pathsep}{kafka_tools}"
    tutorial.take("docker-compose up -d")
    environment = {**tutorial.environment, **_environment_of_connect(tutorial, port)}
    worker_file = tmp_path / "etc" / "kafka-connect.properties"
    with running_container((), tmp_path, environment, worker_file) as program:
        assert program.address
        tutorial.take("docker ps")
        tutorial.take("docker exec -it connect")
        [line] = [
            line
            for line in tutorial.run("ps -efww").splitlines()
            if line.split()[1] == str(program.pid)
        ]
        assert line.endswith(str(worker_file)), "the process of the entry point is the worker"
        printed = (tutorial.directory / "kafka-connect.properties").read_text("utf-8")
        rendered = tutorial.run("cat /etc/kafka-connect/kafka-connect.properties")
        assert len(rendered.splitlines()) == 14
        assert set(rendered.splitlines()) == set(printed.replace(PORT, str(port)).splitlines())
        tutorial.take("docker exec -it broker ")
        assert f"Created topic {TOPIC}." in tutorial.run("kafka-topics --create")
        loop = tutorial.take("while [[ true ]]; do echo").removesuffix("&")
        with running_terminal(loop, tutorial.directory, tutorial.environment):
            created = tutorial.run_json("cat connectors.json | curl -X POST")
            assert (created["name"], created["type"]) == ("test_mirror", "source")
            assert tutorial.run_json("curl localhost:28082/connectors") == ["test_mirror"]
            wait_until(
                lambda: REMOTE in clusters.target_topics(), "the remote topic", SPARK_TIMEOUT_S
            )
            tutorial.take("docker exec -it broker2")
            assert REMOTE in tutorial.run("kafka-topics --list").splitlines()
            consumer = tutorial.take("kafka-console-consumer")
            with running_terminal(consumer, tutorial.directory, tutorial.environment) as terminal:
                assert terminal.stdout
                numbers = [terminal.stdout.readline() for _ in range(NUMBERS)]
            assert all(number.strip().isdigit() for number in numbers), numbers
        assert tutorial.commands_left == []
        wait_until_copied(program, clusters, TOPIC, REMOTE)
        program.wait_for_states("test_mirror", "RUNNING", "RUNNING")
        tutorial.enter("curl -s -f -X DELETE localhost:28082/connectors/test_mirror")
        program.stop()
    clusters.assert_copied(TOPIC, REMOTE, fences=1)
    assert {
        *(f"quickstart_{what}" for what in ("config", "offsets", "status")),
        "mm2-offset-syncs.target.internal",
    } <= topic_names(clusters.source)
    assert _replicas(clusters, "mm2-offset-syncs.target.internal") == 1


def _environment_of_connect(tutorial: Tutorial, port: int) -> dict[str, str]:
    """The variables of the service `connect`, which the tutorial appends to its first file."""
    first = (tutorial.directory / "docker-compose.yml").read_text("utf-8")
    appended = (tutorial.directory / "docker-compose-connect.yml").read_text("utf-8")
    services = yaml.safe_load(f"{first}  {appended}")["services"]
    assert list(services) == ["zookeeper", "zookeeper2", "broker", "broker2", "connect"]
    variables = dict(text.split("=", 1) for text in services["connect"]["environment"])
    assert variables["CONNECT_REST_PORT"] == PORT
    return {**variables, "CONNECT_REST_PORT": str(port)}


def _replicas(clusters: MirroredClusters, topic: str) -> int:
    with Admin(clusters.source.access) as admin:
        return len(admin.describe_topics([topic])[topic].partitions[0].replicas)
