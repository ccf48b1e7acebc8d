"""Tutorial 003: its three scenarios in dedicated mode, each command typed.

Replaced words: addresses, `/home`, the directories of Kafka's scripts (one of them misspelt), and
`strinzi.properties` (misspelt). Event Streams and the Strimzi cluster are listeners of two real
clusters, the local target has three brokers. `oc` works on directories; the pod of
`deploy/openshift` runs with its arguments and mounts. The images of `docker run` are a shell of
this computer. The trust store is made first: the tutorial uses it before it prints the command.
Added to each file is a listener on a free port. `docs/tutorials.md` names the test of the mirror
maker descriptor and of each error in the tutorial's list.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import yaml

from sparkmirror.cluster.admin import Admin
from sparkmirror.config.files.properties import load_properties
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from tests.spark.tutorials.conftest import (
    EVENT_STREAMS_SOURCE_KEY,
    EVENT_STREAMS_TARGET_KEY,
    authority_of,
    mirrored_without_logins,
    write_system_authorities,
)
from tests.support.cli.mirror_process import (
    SCRIPTS,
    SPARK_TIMEOUT_S,
    MirrorProcess,
    running_process,
)
from tests.support.security.java_stores import find_keytool
from tests.support.tutorials.containers import running_terminal, wait_until_copied
from tests.support.tutorials.tutorial import TUTORIALS, Tutorial
from tests.support.waiting import wait_until

OPENSHIFT = TUTORIALS.parents[1] / "deploy" / "openshift"
ADDED_LINES = """
listeners=http://127.0.0.1:0
target->source.emit.heartbeats.enabled=false
"""
"""A free port. No herder writes to the source, which has one broker here: a herder of the way back
needs three brokers for its topics, and the process ends if they are not there within a minute."""
RECORDS = 100
FENCES = 4
"""One for each program that goes on behind another, and for a busy computer."""


class EventStreams:
    """The tutorial on the clusters of the test."""

    def __init__(
        self, clusters: tuple[Cluster, Cluster], kafka_tools: Path, directory: Path
    ) -> None:
        source, target = clusters
        self.clusters = mirrored_without_logins(source, target)
        printed = TUTORIALS / "003"
        cloud, route = (
            load_properties(printed / name).mapping["source.bootstrap.servers"]
            for name in ("mirror-maker.properties", "strimzi-mm2.properties")
        )
        cloud_target = load_properties(printed / "eventstream.properties").mapping
        home, cluster = directory / "home", directory / "cluster"
        words = {
            cloud: source.bootstrap_servers(ListenerProtocol.SASL_SSL),
            route: source.bootstrap_servers(ListenerProtocol.SSL),
            cloud_target["bootstrap.servers"]: target.bootstrap_servers(ListenerProtocol.SASL_SSL),
            "kafka1:9092,kafka2:9093,kafka3:9094": target.bootstrap_servers(
                ListenerProtocol.PLAINTEXT
            ),
            "/home/": f"{home}/",
            "/opt/kafka/bin": str(kafka_tools),
            "/opt/kakfa/bin": str(SCRIPTS),
            "strinzi.properties": "strimzi.properties",
            "binding=am_": f"binding={EVENT_STREAMS_TARGET_KEY}",
            "replace-with-event-streams-apikey": EVENT_STREAMS_SOURCE_KEY,
            'KAFKA_BROKERS="..."': f'KAFKA_BROKERS="{source.bootstrap_servers()}"',
            "/tmp/logs": str(directory / "logs"),  # noqa: S108 - the directory of the tutorial
        }
        self.tutorial = Tutorial("003", home, words)
        for program in ("oc", "consumeFromLocal.sh"):
            self.tutorial.install(program)
        (self.tutorial.programs / "keytool").symlink_to(find_keytool().program)
        (home / "produceToStrimzi.sh").symlink_to(home / "own" / "produceToStrimzi.sh")
        (home / "SendProductToKafka.py").symlink_to(home / "own" / "send_products.py")
        authorities = directory / "authorities.pem"
        write_system_authorities(authorities, map(authority_of, clusters))
        certificate = cluster / "secrets" / "my-cluster-cluster-ca-cert" / "ca.crt"
        certificate.parent.mkdir(parents=True)
        certificate.write_bytes(authority_of(source).ca_certificate.read_bytes())
        self.cluster = cluster
        self.route = source.bootstrap_servers(ListenerProtocol.SSL)
        self.event_streams = target.bootstrap_servers(ListenerProtocol.SASL_SSL)
        self.tutorial.environment |= {
            "CLUSTER": str(cluster),
            "ROUTE": self.route,
            "SSL_CERT_FILE": str(authorities),
        }
        self._directory = directory
        self._trust_clouds_in_java(authority_of(target).ca_certificate)

    def _trust_clouds_in_java(self, certificate: Path) -> None:
        """Let Kafka's tools trust the target without a store in their file."""
        store = self._directory / "cacerts"
        find_keytool().trust(store, certificate)
        options = (
            f'-Djavax.net.ssl.trustStore="{store}" -Djavax.net.ssl.trustStorePassword=store-pw'
        )
        self.tutorial.environment["JAVA_TOOL_OPTIONS"] = options

    @contextmanager
    def terminal(self, command: str, directory: Path) -> Iterator[IO[str]]:
        """Type a command that does not end into a terminal of its own; returns what it prints."""
        exported = f'. "{self.tutorial.shell_state}"\n'
        environment = self.tutorial.environment
        with running_terminal(exported + command, directory, environment) as process:
            assert process.stdout
            yield process.stdout

    @contextmanager
    def running(self, *command: str) -> Iterator[MirrorProcess]:
        """Run a program with the variables of the shell, but no options for Java.

        It leaves its group at its end, so that the next one need not wait.
        """
        environment = {**self.tutorial.environment}
        del environment["JAVA_TOOL_OPTIONS"]
        directory = self._directory / Path(command[-1]).stem
        with running_process(command, directory, environment) as program:
            yield program
            program.stop()


def test_scenarios_between_event_streams_strimzi_and_a_local_cluster(
    secured_source: Cluster, secured_target: Cluster, kafka_tools: Path, tmp_path: Path
) -> None:
    scenario = EventStreams((secured_source, secured_target), kafka_tools, tmp_path)
    tutorial, clusters = scenario.tutorial, scenario.clusters
    _make_trust_store(scenario)
    clusters.create_topic("orders", 2)
    clusters.write_records("orders", range(RECORDS), 2)
    _copy_from_event_streams(scenario)
    _copy_to_event_streams(scenario, kafka_tools)
    _copy_from_strimzi(scenario)
    tutorial.run("export LOG_DIR")
    assert tutorial.commands_left == []
    tutorial.enter(f"'{SCRIPTS}/connect-mirror-maker.sh' -daemon no-such-file.properties")
    wait_until(
        lambda: "no-such-file.properties" in _text_of_files(tmp_path / "logs"),
        "the log of a mirror in the background",
        SPARK_TIMEOUT_S,
    )
    clusters.assert_copied("orders", "source.orders", 2, FENCES)
    clusters.assert_copied("products", "source.products", 1, FENCES)


def _first_record(printed: IO[str]) -> str:
    """The first line that a consumer prints and that does not warn about an option."""
    return next(line for line in printed if not line.startswith("Option --"))


def _text_of_files(directory: Path) -> str:
    return "".join(file.read_text("utf-8") for file in directory.glob("*"))


def _make_trust_store(scenario: EventStreams) -> None:
    tutorial = scenario.tutorial
    assert tutorial.run("oc get routes") == f"{scenario.route}\n"
    assert "my-cluster-cluster-ca-cert" in tutorial.run("oc get secrets")
    tutorial.run("oc extract secret/my-cluster-cluster-ca-cert")
    tutorial.run("keytool -import")
    store = (tutorial.directory / "truststore.jks").read_bytes()
    assert store[:4] != b"\xfe\xed\xfe\xed", "keytool of today writes PKCS12, whatever the name"


def _copy_from_event_streams(scenario: EventStreams) -> None:
    """Scenario A: API key at the source; the records have headers."""
    file = scenario.tutorial.directory / "mirror-maker.properties"
    file.write_text(file.read_text("utf-8") + ADDED_LINES, "utf-8")
    with scenario.running(str(SCRIPTS / "connect-mirror-maker.sh"), str(file)) as program:
        wait_until_copied(program, scenario.clusters, "orders", "source.orders", 2)
        wanted = {f"mm2-{what}.source.internal" for what in ("configs", "offsets", "status")}
        with Admin(scenario.clusters.target.access) as admin:
            found = admin.describe_topics(wanted)
        assert {
            name: len(topic.partitions[0].replicas) for name, topic in found.items()
        } == dict.fromkeys(wanted, 3)


def _copy_to_event_streams(scenario: EventStreams, kafka_tools: Path) -> None:
    """Scenario B: the pod, with the certificate and the API key of Secrets."""
    tutorial, clusters = scenario.tutorial, scenario.clusters
    clusters.create_topic("products")
    text = (OPENSHIFT / "kafka-to-es-mm2.properties").read_text("utf-8")
    for written, local in (
        ("my-cluster-kafka-bootstrap:9093", scenario.route),
        ("broker-0.example.com:9093", scenario.event_streams),
        ("/etc/", f"{scenario.cluster}/secrets/"),
    ):
        assert written in text
        text = text.replace(written, local)
    (tutorial.directory / "kafka-to-es-mm2.properties").write_text(text + ADDED_LINES, "utf-8")
    pod = (OPENSHIFT / "mm2-pod.yaml").read_text("utf-8")
    (tutorial.directory / "mm2-pod.yaml").write_text(pod, "utf-8")
    tutorial.run("oc create configmap")
    tutorial.run("oc create secret")
    tutorial.run("oc apply -f mm2-pod.yaml")
    [container] = yaml.safe_load(pod)["spec"]["containers"]
    script, file = container["args"]
    configmap = f"{scenario.cluster}/configmaps/mm2properties"
    file = file.replace("/etc/mm2properties", configmap)
    with scenario.running(str(SCRIPTS / Path(script).name), file) as program:
        tutorial.run("export KAFKA_PWD")
        tutorial.run("export KAFKA_BROKERS")
        tutorial.take("docker run -ti -v $(pwd):/home --rm -e")
        tutorial.take("docker run -ti -v $(pwd):/home strimzi")
        tutorial.run("cd /opt/kafka/bin")
        consumer = tutorial.take("./kafka-console-consumer.sh")
        producer = tutorial.take("python SendProductToKafka.py")
        with (
            scenario.terminal(consumer, kafka_tools) as printed,
            scenario.terminal(f"while sleep 1; do {producer}; done", tutorial.directory),
        ):
            assert '"product_id"' in _first_record(printed)
        wait_until_copied(program, clusters, "products", "source.products")
        tutorial.enter(f'export KAFKA_BROKERS="{scenario.event_streams}"')
        at_event_streams = tutorial.run("/opt/kafka/bin/kafka-topics.sh --bootstrap-server $KAFKA")
        assert "source.products" in at_event_streams.splitlines()
        assert "products" in tutorial.run("/opt/kafka/bin/kafka-topics.sh").splitlines()
        assert "PartitionCount: 1" in tutorial.run("/opt/kafka/bin//kafka-topics.sh")


def _copy_from_strimzi(scenario: EventStreams) -> None:
    """Scenario C: the trust store; what a producer writes appears at a consumer."""
    tutorial, clusters = scenario.tutorial, scenario.clusters
    tutorial.take("docker-compose up")
    tutorial.take("docker run -ti --network kafkanet")
    file = tutorial.directory / "strimzi-mm2.properties"
    file.write_text(file.read_text("utf-8") + ADDED_LINES, "utf-8")
    command = tutorial.take("/opt/kakfa/bin/connect-mirror-maker.sh").split(" /")
    assert [Path(command[0]).name, f"/{command[1]}"] == ["connect-mirror-maker.sh", str(file)]
    with scenario.running(command[0], str(file)) as program:
        consumer = tutorial.take("consumeFromLocal.sh source.orders")
        producer = tutorial.take("/home/produceToStrimzi.sh orders")
        typed = "while sleep 0.2; do echo another order; done"
        with (
            scenario.terminal(consumer, tutorial.directory) as printed,
            scenario.terminal(f"{typed} | {producer}", tutorial.directory),
        ):
            assert _first_record(printed) == "another order\n"
        wait_until_copied(program, clusters, "orders", "source.orders", 2)
