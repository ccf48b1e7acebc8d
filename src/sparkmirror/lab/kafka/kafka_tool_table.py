"""The table of Kafka's command-line tools: name, main classes, and connection flags.

Main classes have moved between releases. A row lists the newest first; the first one that the jars
hold is used. Kafka 4.2 unified the flags; a row also names the flags of older releases. Pure: this
module starts no program.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from sparkmirror.errors import NotFound
from sparkmirror.lab.kafka.kafka_version import is_before

_TOOLS_PACKAGE = "org.apache.kafka.tools."
_BOOTSTRAP_FLAG = "--bootstrap-server"
_CONFIG_FLAG = "--command-config"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTool:
    """One tool. The flag "" means that the tool has no such flag."""

    name: str
    main_classes: tuple[str, ...]
    server_flag: str = _BOOTSTRAP_FLAG
    config_flag: str = _CONFIG_FLAG
    server_flag_before_4_2: str = _BOOTSTRAP_FLAG
    config_flag_before_4_2: str = _CONFIG_FLAG
    # The position of the connection flags: kafka-cluster requires them after its sub-command.
    connection_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolConnection:
    """How a tool connects to a cluster. `config_file` is a client properties file or ""."""

    bootstrap_servers: str
    config_file: str = ""


def _admin_tool(name: str, *mains: str) -> KafkaTool:
    return KafkaTool(name=name, main_classes=tuple(mains))


def _standalone_tool(name: str, *mains: str) -> KafkaTool:
    """Return a tool that has no flag for bootstrap servers."""
    return KafkaTool(
        name=name,
        main_classes=tuple(mains),
        server_flag="",
        config_flag="",
        server_flag_before_4_2="",
        config_flag_before_4_2="",
    )


def _client_tool(name: str, old_config_flag: str, *mains: str) -> KafkaTool:
    return KafkaTool(name=name, main_classes=tuple(mains), config_flag_before_4_2=old_config_flag)


_ALL = (
    _admin_tool("kafka-acls", f"{_TOOLS_PACKAGE}AclCommand", "kafka.admin.AclCommand"),
    _admin_tool(
        "kafka-broker-api-versions",
        f"{_TOOLS_PACKAGE}BrokerApiVersionsCommand",
        "kafka.admin.BrokerApiVersionsCommand",
    ),
    _admin_tool("kafka-client-metrics", f"{_TOOLS_PACKAGE}ClientMetricsCommand"),
    KafkaTool(
        name="kafka-cluster",
        main_classes=(f"{_TOOLS_PACKAGE}ClusterTool", "kafka.tools.ClusterTool"),
        config_flag_before_4_2="--config",
        connection_last=True,
    ),
    _admin_tool("kafka-configs", f"{_TOOLS_PACKAGE}ConfigCommand", "kafka.admin.ConfigCommand"),
    _client_tool(
        "kafka-console-consumer",
        "--consumer.config",
        f"{_TOOLS_PACKAGE}consumer.ConsoleConsumer",
        "kafka.tools.ConsoleConsumer",
    ),
    _client_tool(
        "kafka-console-producer",
        "--producer.config",
        f"{_TOOLS_PACKAGE}ConsoleProducer",
        "kafka.tools.ConsoleProducer",
    ),
    _client_tool(
        "kafka-console-share-consumer",
        "--consumer-config",
        f"{_TOOLS_PACKAGE}consumer.ConsoleShareConsumer",
    ),
    _admin_tool(
        "kafka-consumer-groups",
        f"{_TOOLS_PACKAGE}consumer.group.ConsumerGroupCommand",
        "kafka.admin.ConsumerGroupCommand",
    ),
    _client_tool(
        "kafka-consumer-perf-test",
        "--consumer.config",
        f"{_TOOLS_PACKAGE}ConsumerPerformance",
        "kafka.tools.ConsumerPerformance",
    ),
    _admin_tool(
        "kafka-delegation-tokens",
        f"{_TOOLS_PACKAGE}DelegationTokenCommand",
        "kafka.admin.DelegationTokenCommand",
    ),
    _admin_tool(
        "kafka-delete-records",
        f"{_TOOLS_PACKAGE}DeleteRecordsCommand",
        "kafka.admin.DeleteRecordsCommand",
    ),
    _standalone_tool(
        "kafka-dump-log", f"{_TOOLS_PACKAGE}DumpLogSegments", "kafka.tools.DumpLogSegments"
    ),
    _standalone_tool(
        "kafka-e2e-latency", f"{_TOOLS_PACKAGE}EndToEndLatency", "kafka.tools.EndToEndLatency"
    ),
    _admin_tool("kafka-features", f"{_TOOLS_PACKAGE}FeatureCommand", "kafka.admin.FeatureCommand"),
    _admin_tool(
        "kafka-get-offsets", f"{_TOOLS_PACKAGE}GetOffsetShell", "kafka.tools.GetOffsetShell"
    ),
    _admin_tool("kafka-groups", f"{_TOOLS_PACKAGE}GroupsCommand"),
    _standalone_tool("kafka-jmx", f"{_TOOLS_PACKAGE}JmxTool", "kafka.tools.JmxTool"),
    _client_tool(
        "kafka-leader-election",
        "--admin.config",
        f"{_TOOLS_PACKAGE}LeaderElectionCommand",
        "kafka.admin.LeaderElectionCommand",
    ),
    _admin_tool("kafka-log-dirs", f"{_TOOLS_PACKAGE}LogDirsCommand", "kafka.admin.LogDirsCommand"),
    _admin_tool("kafka-metadata-quorum", f"{_TOOLS_PACKAGE}MetadataQuorumCommand"),
    KafkaTool(
        name="kafka-producer-perf-test",
        main_classes=(f"{_TOOLS_PACKAGE}ProducerPerformance",),
        server_flag_before_4_2="--producer-props",
        config_flag_before_4_2="--producer.config",
    ),
    _admin_tool(
        "kafka-reassign-partitions",
        f"{_TOOLS_PACKAGE}reassign.ReassignPartitionsCommand",
        "kafka.admin.ReassignPartitionsCommand",
    ),
    KafkaTool(
        name="kafka-replica-verification",
        main_classes=(
            f"{_TOOLS_PACKAGE}ReplicaVerificationTool",
            "kafka.tools.ReplicaVerificationTool",
        ),
        server_flag="--broker-list",
        server_flag_before_4_2="--broker-list",
        config_flag="",
        config_flag_before_4_2="",
    ),
    _client_tool(
        "kafka-share-consumer-perf-test",
        "--consumer.config",
        f"{_TOOLS_PACKAGE}ShareConsumerPerformance",
    ),
    _admin_tool("kafka-share-groups", f"{_TOOLS_PACKAGE}consumer.group.ShareGroupCommand"),
    _standalone_tool("kafka-storage", "kafka.tools.StorageTool"),
    _client_tool(
        "kafka-streams-application-reset", "--config-file", f"{_TOOLS_PACKAGE}StreamsResetter"
    ),
    _admin_tool("kafka-streams-groups", f"{_TOOLS_PACKAGE}streams.StreamsGroupCommand"),
    _admin_tool("kafka-topics", f"{_TOOLS_PACKAGE}TopicCommand", "kafka.admin.TopicCommand"),
    _admin_tool("kafka-transactions", f"{_TOOLS_PACKAGE}TransactionsCommand"),
    _client_tool(
        "kafka-verifiable-consumer", "--consumer.config", f"{_TOOLS_PACKAGE}VerifiableConsumer"
    ),
    _client_tool(
        "kafka-verifiable-producer", "--producer.config", f"{_TOOLS_PACKAGE}VerifiableProducer"
    ),
    _standalone_tool("kafka-server-start", "kafka.Kafka"),
    _standalone_tool("connect-distributed", "org.apache.kafka.connect.cli.ConnectDistributed"),
    _standalone_tool("connect-mirror-maker", "org.apache.kafka.connect.mirror.MirrorMaker"),
    _standalone_tool("connect-plugin-path", f"{_TOOLS_PACKAGE}ConnectPluginPath"),
    _standalone_tool("connect-standalone", "org.apache.kafka.connect.cli.ConnectStandalone"),
    _standalone_tool("zookeeper-shell", "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka"),
)
KAFKA_TOOLS = {tool.name: tool for tool in _ALL}


def find_tool(name: str) -> KafkaTool:
    """Return a tool by its name, with or without `.sh`. Raises NotFound."""
    tool_name = name.removesuffix(".sh")
    if tool_name in KAFKA_TOOLS:
        return KAFKA_TOOLS[tool_name]
    # Almost every name begins with "kafka-". With the prefix, all names would be close matches.
    without_prefix = {known.removeprefix("kafka-"): known for known in KAFKA_TOOLS}
    matches = difflib.get_close_matches(tool_name.removeprefix("kafka-"), without_prefix, n=1)
    hint = f" Did you mean {without_prefix[matches[0]]}?" if matches else ""
    raise NotFound(
        f"There is no tool {name!r}.{hint} Known tools: {', '.join(sorted(KAFKA_TOOLS))}."
    )


def add_connection_arguments(
    tool: KafkaTool, arguments: Sequence[str], connection: ToolConnection, version: str
) -> list[str]:
    """Return the arguments with the flags that connect the tool to a cluster.

    Arguments that name bootstrap servers may mean another cluster: they stay unchanged.
    """
    old = is_before(version, 4, 2)
    server_flag = tool.server_flag_before_4_2 if old else tool.server_flag
    config_flag = tool.config_flag_before_4_2 if old else tool.config_flag
    if not server_flag or not needs_bootstrap_servers(tool, arguments):
        return list(arguments)
    added = [server_flag, _server_value(server_flag, connection.bootstrap_servers)]
    config_flags = {_CONFIG_FLAG, tool.config_flag, tool.config_flag_before_4_2}
    if connection.config_file and config_flag and not _has_flag(arguments, config_flags):
        added += [config_flag, connection.config_file]
    return [*arguments, *added] if tool.connection_last else [*added, *arguments]


def _server_value(flag: str, bootstrap: str) -> str:
    return f"bootstrap.servers={bootstrap}" if flag == "--producer-props" else bootstrap


def needs_bootstrap_servers(tool: KafkaTool, arguments: Sequence[str]) -> bool:
    """Return whether the arguments lack bootstrap servers and do not ask for help or version."""
    if not tool.server_flag or {"--help", "-h", "--version"} & set(arguments):
        return False
    # Kafka's parser also accepts abbreviated flags.
    server_flags = ("--bootstrap", "--broker-list", "bootstrap.servers=")
    return not any(argument.startswith(server_flags) for argument in arguments)


def _has_flag(arguments: Sequence[str], flags: set[str]) -> bool:
    return any(argument.split("=", 1)[0] in flags for argument in arguments)
