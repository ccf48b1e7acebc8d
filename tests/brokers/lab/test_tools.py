"""Kafka's tools from the cached jars against a real cluster."""

from __future__ import annotations

import pytest

from sparkmirror.errors import LabError
from sparkmirror.lab.kafka.kafka_tool_table import (
    ToolConnection,
    add_connection_arguments,
    find_tool,
)
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from tests.support.kafka.clusters import SharedCluster, create_topic, write_values
from tests.support.timing import fastest_run_s


@pytest.fixture(scope="module")
def tools() -> KafkaToolRunner:
    return KafkaToolRunner()


def _run_tool(
    tools: KafkaToolRunner, cluster: SharedCluster, name: str, *arguments: str, text: str = ""
) -> str:
    to = ToolConnection(bootstrap_servers=cluster.bootstrap)
    complete = add_connection_arguments(find_tool(name), arguments, to, tools.version)
    return tools.run(name, complete, text, timeout_s=180)


def test_console_tools_print_records_and_nothing_else(
    tools: KafkaToolRunner, primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    _run_tool(tools, primary, "kafka-console-producer", "--topic", topic, text="one\ntwo\n")
    options = ("--topic", topic, "--from-beginning", "--max-messages", "2")
    assert _run_tool(tools, primary, "kafka-console-consumer.sh", *options) == "one\ntwo\n"


def test_admin_tools_print_only_their_result(
    tools: KafkaToolRunner, primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic, partitions=2)
    write_values(primary.access, topic, b"one", b"two")
    answer = _run_tool(tools, primary, "kafka-get-offsets", "--topic", topic)
    assert sorted(answer.splitlines()) == [f"{topic}:0:2", f"{topic}:1:0"]


def test_tool_with_a_subcommand_gets_its_connection(
    tools: KafkaToolRunner, primary: SharedCluster
) -> None:
    assert _run_tool(tools, primary, "kafka-cluster", "cluster-id").startswith("Cluster ID: ")


def test_error_contains_the_output_of_a_failed_tool(tools: KafkaToolRunner) -> None:
    with pytest.raises(LabError, match="(?s)kafka-topics --bogus ended with exit code 1: .*bogus"):
        tools.run("kafka-topics", ["--bogus"])


def test_tool_is_killed_after_its_timeout(
    tools: KafkaToolRunner, primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    arguments = ["--bootstrap-server", primary.bootstrap, "--topic", topic]

    def run_consumer() -> None:
        with pytest.raises(LabError, match="did not end within 1 s"):
            tools.run("kafka-console-consumer", arguments, timeout_s=1)

    assert fastest_run_s(run_consumer) < 10
