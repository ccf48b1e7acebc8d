"""Tutorial 001, typed from its first command to its last, and every branch of its script.

`mm2.sh` runs byte for byte. Replaced words: the addresses of the brokers, `docker compose exec
kafka-source-0` (the tools run on this computer), the directories of the image, and the ports of the
two workers, which share this computer: `curl` reaches the first one under port 8083. Added is
`rest.advertised.host.name=localhost`, because the host names of containers are unknown here. Both
workers are the entry point of the image with command and environment of the tutorial's file. Kafka
UI, Prometheus and Grafana are other tests; here the calls of Kafka UI are made with `curl`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.support.cli.mirror_process import SCRIPTS, SPARK_TIMEOUT_S, MirrorProcess
from tests.support.spark.mirrored_clusters import MirroredClusters, topic_names
from tests.support.tutorials.containers import free_ports, running_container, wait_until_copied
from tests.support.tutorials.tutorial import Tutorial
from tests.support.waiting import wait_until

TOPIC, PARTITIONS, RECORDS = "test", 5, 200
SCRIPT_S = 1.0
"""Between two tries of a script that starts several processes."""
DEPLOYED = [
    "Deploying cluster source-0",
    "Deploying checkpoints connector",
    "Deploying heartbeats connector",
    "Deploying source connector",
]
DEPLOYED_ALREADY = [
    "Deploying cluster source-0",
    "Checkpoints connector already deployed",
    "Heartbeat connector already deployed",
    "Source connector already deployed",
]
UNDEPLOYED = [
    "Checkpoints connector undeployed",
    "Heartbeats connector undeployed",
    "Source connector undeployed",
]
NOT_FOUND = [
    "WARN: checkpoints connector not found",
    "WARN: heartbeats connector not found",
    "WARN: source connector not found",
]
FENCES = 2
"""For a busy computer, on which a task may miss its reports."""


def test_script_deploys_three_connectors_to_two_workers(
    two_broker_clusters: MirroredClusters, kafka_tools: Path, tmp_path: Path
) -> None:
    clusters = two_broker_clusters
    ports, metrics_ports = free_ports(2, tmp_path), free_ports(2, tmp_path)
    words = {
        "docker compose exec kafka-source-0 ": "",
        "kafka-source-0:9092,kafka-source-1:9092": clusters.source.bootstrap,
        "kafka-target-0:9092,kafka-target-1:9092": clusters.target.bootstrap,
        "/opt/bitnami/kafka/bin": str(kafka_tools),
        "/opt/bitnami/kafka/config": str(tmp_path / "home" / "own"),
    }
    tutorial = Tutorial("001", tmp_path / "home", words, {8083: ports[0]})
    tutorial.take("docker-compose up")
    tutorial.run("mkdir -p kafka-connect")
    tutorial.run("touch kafka-connect/connect-distributed.properties")
    with _running_workers(tutorial, ports, metrics_ports) as (first, second):
        assert first.address and second.address
        tutorial.run("docker compose exec kafka-source-0 /opt/bitnami/kafka/bin/kafka-topics.sh")
        lines = "".join(f"message {number}\n" for number in range(RECORDS))
        tutorial.run("docker compose exec kafka-source-0", text=lines)
        _assert_script_explains_wrong_calls(tutorial)
        assert tutorial.enter("./mm2.sh status source-0") == _states("null")
        assert tutorial.run("./mm2.sh deploy source-0").splitlines() == DEPLOYED
        assert tutorial.commands_left == []
        wait_until(
            lambda: tutorial.enter("./mm2.sh status source-0") == _states('"RUNNING"'),
            "all to run",
            SPARK_TIMEOUT_S,
            SCRIPT_S,
        )
        assert tutorial.enter("./mm2.sh deploy source-0").splitlines() == DEPLOYED_ALREADY
        different = "Connector mm2-msc-source-0 has replication.policy.class"
        assert different in first.output + second.output, "only the source connector has a policy"
        wait_until_copied(first, clusters, TOPIC, TOPIC, PARTITIONS)
        first.wait_for_states("mm2-msc-source-0", "RUNNING", "RUNNING", "RUNNING")
        _assert_kafka_ui_may_show_the_connectors(first, second)
        _assert_metrics_are_served(tutorial, metrics_ports)
        _wait_for_topics(clusters)
        assert tutorial.enter("./mm2.sh redeploy source-0").splitlines() == [
            "Redeploying cluster source-0",
            *UNDEPLOYED,
            *DEPLOYED[1:],
        ]
        undeployed = tutorial.enter("./mm2.sh undeploy source-0").splitlines()
        assert undeployed == ["Undeploying cluster source-0", *UNDEPLOYED]
        again = tutorial.enter("./mm2.sh undeploy source-0").splitlines()
        assert again[1:] == [
            line for pair in zip(NOT_FOUND, UNDEPLOYED, strict=True) for line in pair
        ]
        first.stop()
        second.stop()
    clusters.assert_copied(TOPIC, TOPIC, PARTITIONS, FENCES)
    assert sum(clusters.target_record_counts(TOPIC, TOPIC, PARTITIONS)) == RECORDS


@contextmanager
def _running_workers(
    tutorial: Tutorial, ports: list[int], metrics_ports: list[int]
) -> Iterator[list[MirrorProcess]]:
    """The services of the second compose file. Each container has its own file and ports."""
    text = (tutorial.directory / "docker-compose-connect.yml").read_text("utf-8")
    services = yaml.safe_load(text)
    config = (tutorial.directory / "kafka-connect" / "connect-distributed.properties").read_text()
    with ExitStack() as stack:
        started = []
        for number, (port, metrics_port) in enumerate(zip(ports, metrics_ports, strict=True)):
            service = services[f"kafka-connect-{number}"]
            assert service["hostname"] == f"kafka-connect-{number}"
            directory = tutorial.directory / service["hostname"]
            directory.mkdir()
            file = directory / "connect-distributed.properties"
            file.write_text(
                config.replace("8083", str(port)) + "rest.advertised.host.name=localhost\n"
            )
            script = SCRIPTS / Path(service["command"].split()[0]).name
            started.append(
                stack.enter_context(
                    running_container(
                        (str(script), str(file)),
                        directory,
                        _environment(tutorial, service, metrics_port),
                        directory / "unused",
                    )
                )
            )
        for port in ports:
            check = shlex.split(services["x-kafka-connect-common"]["healthcheck"]["test"])[-1]
            command = check.replace("8083", str(port)).replace("$$", "$")
            wait_until(partial(_succeeds, tutorial, command), "health", SPARK_TIMEOUT_S, SCRIPT_S)
        yield started


def _environment(tutorial: Tutorial, service: Mapping[str, Any], port: int) -> dict[str, str]:
    variables = {
        name: value.replace("9404", str(port)) for name, value in service["environment"].items()
    }
    assert f"jmx_prometheus_javaagent-0.19.0.jar={port}:" in variables["KAFKA_HEAP_OPTS"]
    return {**tutorial.environment, **variables}


def _succeeds(tutorial: Tutorial, command: str) -> bool:
    try:
        tutorial.enter(f"( {command} )")
    except AssertionError:
        return False
    return True


def _states(state: str) -> str:
    return "".join(f"{kind} connector: {state}\n" for kind in ("Checkpoint", "Heartbeat", "Source"))


def _assert_script_explains_wrong_calls(tutorial: Tutorial) -> None:
    usage = "usage: mm2.sh [deploy | undeploy | redeploy | status] cluster\n"
    assert tutorial.enter("./mm2.sh") == usage
    assert tutorial.enter("./mm2.sh install source-0") == usage
    assert tutorial.enter("./mm2.sh deploy", status=1) == "Cluster is empty\n"
    missing = tutorial.enter("./mm2.sh redeploy source-9", status=1)
    assert missing.splitlines() == [
        f"{what} conf is missing. Create file kafka-connect/mm2-{kind}-source-9.json"
        for what, kind in (("Checkpoints", "cpc"), ("Heartbeat", "hbc"), ("Source", "msc"))
    ]
    for kind in ("cpc", "hbc", "msc"):
        file = tutorial.directory / "mm2" / f"mm2-{kind}-source-0.json"
        text = file.read_text("utf-8").replace("connect.mirror.Mirror", "connect.mirror.Morror")
        file.with_name(f"mm2-{kind}-broken.json").write_text(text, "utf-8")
    refused = tutorial.enter("./mm2.sh deploy broken").splitlines()
    assert [line for line in refused if line.startswith("ERROR: ")] == [
        f"ERROR: Failed to deploy {kind} connector"
        for kind in ("checkpoints", "heartbeats", "source")
    ]


def _assert_kafka_ui_may_show_the_connectors(first: MirrorProcess, second: MirrorProcess) -> None:
    """Make the calls of Kafka UI's pages, at both workers as its file names both."""
    names = {f"mm2-{kind}-source-0" for kind in ("cpc", "hbc", "msc")}
    for worker in (first, second):
        assert set(worker.get_json("/connectors")) == names
        expanded = worker.get_json("/connectors?expand=info&expand=status")
        assert {one["status"]["connector"]["state"] for one in expanded.values()} == {"RUNNING"}
        plugins = worker.get_json("/connector-plugins")
        assert len({one["class"] for one in plugins}) >= 3
    path = "/connectors/mm2-msc-source-0"
    config = second.get_json(f"{path}/config")
    assert config["sync.topic.acls.enabled"] == "false", "a JSON boolean is stored as text"
    assert [task["id"]["task"] for task in second.get_json(f"{path}/tasks")] == [0, 1]
    assert second.get_json(f"{path}/tasks/0/status")["state"] == "RUNNING"
    assert "mm2-msc-source-0" in second.get_json(f"{path}/topics")
    plugin = config["connector.class"].rpartition(".")[2]
    checked = second.call_json("PUT", f"/connector-plugins/{plugin}/config/validate", config)
    assert checked["error_count"] == 0
    heartbeats = "/connectors/mm2-hbc-source-0"
    second.call_json("PUT", f"{heartbeats}/pause")
    first.wait_for_states("mm2-hbc-source-0", "PAUSED", "PAUSED")
    second.call_json("PUT", f"{heartbeats}/resume")
    first.wait_for_states("mm2-hbc-source-0", "RUNNING", "RUNNING")
    second.call_json("POST", f"{heartbeats}/restart")
    first.wait_for_states("mm2-hbc-source-0", "RUNNING", "RUNNING")


def _assert_metrics_are_served(tutorial: Tutorial, ports: list[int]) -> None:
    for port in ports:
        text = tutorial.enter(f"curl -s -f localhost:{port}/metrics")
        assert "\nkafka_connect_worker_" in text


def _wait_for_topics(clusters: MirroredClusters) -> None:
    """Wait for the topics; brokers create those of factor 3 themselves, with the first record."""
    wanted = {
        "heartbeats",
        "source-0.checkpoints.internal",
        *(f"connect-{what}" for what in ("configs", "offsets", "status")),
    }
    wait_until(lambda: wanted <= clusters.target_topics(), f"{wanted}", SPARK_TIMEOUT_S)
    assert "mm2-offset-syncs.target-0.internal" in topic_names(clusters.source)
