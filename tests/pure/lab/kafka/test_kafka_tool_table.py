"""Kafka's tools are found by name and get the arguments of the connection."""

from __future__ import annotations

import pytest

from sparkmirror.errors import NotFound
from sparkmirror.lab.kafka.kafka_tool_table import (
    KAFKA_TOOLS,
    ToolConnection,
    add_connection_arguments,
    find_tool,
)

PLAIN = ToolConnection(bootstrap_servers="127.0.0.1:9092")
SECURED = ToolConnection(bootstrap_servers="h:1,h:2", config_file="/c.properties")


def _arguments(
    name: str, *arguments: str, to: ToolConnection = PLAIN, version: str = "4.3.1"
) -> str:
    return " ".join(add_connection_arguments(find_tool(name), arguments, to, version))


@pytest.mark.parametrize("name", ["kafka-topics", "kafka-topics.sh"], ids=["bare", "sh"])
def test_tool_is_found_with_and_without_sh(name: str) -> None:
    assert find_tool(name).name == "kafka-topics"


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("kafka-topic", "kafka-topics"),
        ("topics", "kafka-topics"),
        ("console-consumer", "kafka-console-consumer"),
        ("kafka-mirror-maker", "connect-mirror-maker"),
    ],
    ids=["singular", "prefix", "console", "mirror"],
)
def test_error_of_an_unknown_tool_names_the_closest_and_all_tools(name: str, closest: str) -> None:
    with pytest.raises(NotFound) as raised:
        find_tool(name)
    message = str(raised.value)
    assert f"Did you mean {closest}?" in message
    assert all(known in message for known in KAFKA_TOOLS)


def test_error_without_a_close_tool_names_only_all_tools() -> None:
    with pytest.raises(NotFound, match=r"^There is no tool 'zzzz'\. Known tools: "):
        find_tool("zzzz")


def test_servers_are_added_before_the_arguments() -> None:
    arguments = _arguments("kafka-transactions", "list")
    assert arguments == "--bootstrap-server 127.0.0.1:9092 list"


def test_kafka_cluster_gets_its_servers_after_the_subcommand() -> None:
    arguments = _arguments("kafka-cluster", "cluster-id", to=SECURED, version="3.9.2")
    assert arguments == "cluster-id --bootstrap-server h:1,h:2 --config /c.properties"


@pytest.mark.parametrize(
    ("name", "version", "flag"),
    [
        ("kafka-topics", "3.9.2", "--command-config"),
        ("kafka-console-consumer", "4.3.1", "--command-config"),
        ("kafka-console-consumer", "4.1.2", "--consumer.config"),
        ("kafka-console-producer", "3.9.2", "--producer.config"),
        ("kafka-consumer-perf-test", "3.9.2", "--consumer.config"),
        ("kafka-leader-election", "3.9.2", "--admin.config"),
        ("kafka-leader-election", "4.2.0", "--command-config"),
    ],
    ids=["topics", "consumer43", "consumer41", "producer39", "perf39", "leader39", "leader42"],
)
def test_client_config_flag_depends_on_tool_and_version(name: str, version: str, flag: str) -> None:
    expected = f"--bootstrap-server h:1,h:2 {flag} /c.properties --x"
    assert _arguments(name, "--x", to=SECURED, version=version) == expected


def test_old_producer_perf_test_gets_servers_as_a_property() -> None:
    arguments = _arguments("kafka-producer-perf-test", "--topic", "t", version="3.9.2")
    assert arguments == "--producer-props bootstrap.servers=127.0.0.1:9092 --topic t"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--list", "--bootstrap-server", "other:1"),
        ("--bootstrap-server=other:1", "--list"),
        ("--bootstrap-controller", "other:1"),
        ("--bootstrap-s", "other:1"),
        ("--producer-props", "acks=1", "bootstrap.servers=other:1"),
        ("--help",),
        ("--version",),
    ],
    ids=["apart", "equals", "controller", "short", "property", "help", "version"],
)
def test_arguments_with_servers_or_help_are_unchanged(
    arguments: tuple[str, ...],
) -> None:
    assert _arguments("kafka-topics", *arguments, to=SECURED) == " ".join(arguments)


@pytest.mark.parametrize("own", ["--command-config=mine", "--consumer.config mine"])
def test_client_config_of_the_arguments_is_kept(own: str) -> None:
    arguments = _arguments("kafka-console-consumer", "--topic", "t", *own.split(), to=SECURED)
    assert arguments == f"--bootstrap-server h:1,h:2 --topic t {own}"


@pytest.mark.parametrize("name", ["kafka-storage", "kafka-dump-log", "connect-mirror-maker"])
def test_tools_without_a_connection_get_none(name: str) -> None:
    assert _arguments(name, "a", "b", to=SECURED) == "a b"
