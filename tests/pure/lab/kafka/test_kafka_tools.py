"""Tools are found by name and told how to reach a cluster."""

from __future__ import annotations

import pytest

from sparkmirror.errors import NotFound
from sparkmirror.lab.kafka.kafka_tools import (
    KAFKA_TOOLS,
    ToolConnection,
    add_connection_arguments,
    find_tool,
)

PLAIN = ToolConnection(bootstrap_servers="127.0.0.1:9092")
SECURED = ToolConnection(bootstrap_servers="h:1,h:2", config_file="/c.properties")


def _fill(name: str, *arguments: str, to: ToolConnection = PLAIN, version: str = "4.3.1") -> str:
    return " ".join(add_connection_arguments(find_tool(name), arguments, to, version))


@pytest.mark.parametrize("name", ["kafka-topics", "kafka-topics.sh"], ids=["bare", "sh"])
def test_tool_is_found_with_and_without_sh(name: str) -> None:
    assert find_tool(name).name == "kafka-topics"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("kafka-topic", "kafka-topics"),
        ("topics", "kafka-topics"),
        ("console-consumer", "kafka-console-consumer"),
        ("kafka-mirror-maker", "connect-mirror-maker"),
    ],
    ids=["singular", "prefix", "console", "mirror"],
)
def test_unknown_tool_is_answered_with_the_nearest_and_all(name: str, meant: str) -> None:
    with pytest.raises(NotFound) as refused:
        find_tool(name)
    sentence = str(refused.value)
    assert f"Did you mean {meant}?" in sentence
    assert all(known in sentence for known in KAFKA_TOOLS)


def test_name_that_is_like_none_gets_no_guess() -> None:
    with pytest.raises(NotFound, match=r"^There is no tool 'zzzz'\. Known tools: "):
        find_tool("zzzz")


def test_servers_are_filled_in_before_the_arguments() -> None:
    filled = _fill("kafka-transactions", "list")
    assert filled == "--bootstrap-server 127.0.0.1:9092 list"


def test_cluster_tool_wants_its_servers_after_the_subcommand() -> None:
    filled = _fill("kafka-cluster", "cluster-id", to=SECURED, version="3.9.2")
    assert filled == "cluster-id --bootstrap-server h:1,h:2 --config /c.properties"


@pytest.mark.parametrize(
    ("name", "version", "filled"),
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
def test_client_config_goes_to_the_flag_of_tool_and_version(
    name: str, version: str, filled: str
) -> None:
    expected = f"--bootstrap-server h:1,h:2 {filled} /c.properties --x"
    assert _fill(name, "--x", to=SECURED, version=version) == expected


def test_old_producer_benchmark_takes_servers_as_a_property() -> None:
    filled = _fill("kafka-producer-perf-test", "--topic", "t", version="3.9.2")
    assert filled == "--producer-props bootstrap.servers=127.0.0.1:9092 --topic t"


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
def test_arguments_that_want_no_servers_are_left_alone(
    arguments: tuple[str, ...],
) -> None:
    assert _fill("kafka-topics", *arguments, to=SECURED) == " ".join(arguments)


@pytest.mark.parametrize("own", ["--command-config=mine", "--consumer.config mine"])
def test_own_client_config_is_kept(own: str) -> None:
    filled = _fill("kafka-console-consumer", "--topic", "t", *own.split(), to=SECURED)
    assert filled == f"--bootstrap-server h:1,h:2 --topic t {own}"


@pytest.mark.parametrize("name", ["kafka-storage", "kafka-dump-log", "connect-mirror-maker"])
def test_tools_without_a_connection_get_none(name: str) -> None:
    assert _fill(name, "a", "b", to=SECURED) == "a b"
