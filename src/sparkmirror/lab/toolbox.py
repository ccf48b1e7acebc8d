"""Kafka's command-line tools as a table: name, main class, and how each takes its connection.

Main classes have moved between releases, so a row lists them newest first and the first that the
jars hold is used. Flags were made alike in Kafka 4.2; rows name what older releases want. Pure:
nothing here starts a program.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparkmirror.errors import NotFound

_TOOLS = "org.apache.kafka.tools."
_SERVER = "--bootstrap-server"
_CONFIG = "--command-config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. A flag of "" means that the tool takes no such thing."""

    name: str
    mains: tuple[str, ...]
    server_flag: str = _SERVER
    config_flag: str = _CONFIG
    server_flag_before_4_2: str = _SERVER
    config_flag_before_4_2: str = _CONFIG
    # Where a connection goes: argparse tools with sub-commands want it before, kafka-cluster after.
    connection_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What a tool needs to reach a cluster: addresses, and a client properties file or ""."""

    bootstrap: str
    config_file: str = ""


def _admin(name: str, *mains: str) -> Tool:
    return Tool(name=name, mains=tuple(mains))


def _alone(name: str, *mains: str) -> Tool:
    """Build a tool that finds its clusters otherwise, or needs none."""
    return Tool(
        name=name,
        mains=tuple(mains),
        server_flag="",
        config_flag="",
        server_flag_before_4_2="",
        config_flag_before_4_2="",
    )


def _client(name: str, old_config_flag: str, *mains: str) -> Tool:
    return Tool(name=name, mains=tuple(mains), config_flag_before_4_2=old_config_flag)


_ALL = (
    _admin("kafka-acls", f"{_TOOLS}AclCommand", "kafka.admin.AclCommand"),
    _admin(
        "kafka-broker-api-versions",
        f"{_TOOLS}BrokerApiVersionsCommand",
        "kafka.admin.BrokerApiVersionsCommand",
    ),
    _admin("kafka-client-metrics", f"{_TOOLS}ClientMetricsCommand"),
    Tool(
        name="kafka-cluster",
        mains=(f"{_TOOLS}ClusterTool", "kafka.tools.ClusterTool"),
        config_flag_before_4_2="--config",
        connection_last=True,
    ),
    _admin("kafka-configs", f"{_TOOLS}ConfigCommand", "kafka.admin.ConfigCommand"),
    _client(
        "kafka-console-consumer",
        "--consumer.config",
        f"{_TOOLS}consumer.ConsoleConsumer",
        "kafka.tools.ConsoleConsumer",
    ),
    _client(
        "kafka-console-producer",
        "--producer.config",
        f"{_TOOLS}ConsoleProducer",
        "kafka.tools.ConsoleProducer",
    ),
    _client(
        "kafka-console-share-consumer",
        "--consumer-config",
        f"{_TOOLS}consumer.ConsoleShareConsumer",
    ),
    _admin(
        "kafka-consumer-groups",
        f"{_TOOLS}consumer.group.ConsumerGroupCommand",
        "kafka.admin.ConsumerGroupCommand",
    ),
    _client(
        "kafka-consumer-perf-test",
        "--consumer.config",
        f"{_TOOLS}ConsumerPerformance",
        "kafka.tools.ConsumerPerformance",
    ),
    _admin("kafka-delegation-tokens", f"{_TOOLS}DelegationTokenCommand"),
    _admin("kafka-delete-records", f"{_TOOLS}DeleteRecordsCommand"),
    _alone("kafka-dump-log", f"{_TOOLS}DumpLogSegments", "kafka.tools.DumpLogSegments"),
    _alone("kafka-e2e-latency", f"{_TOOLS}EndToEndLatency"),
    _admin("kafka-features", f"{_TOOLS}FeatureCommand", "kafka.admin.FeatureCommand"),
    _admin("kafka-get-offsets", f"{_TOOLS}GetOffsetShell", "kafka.tools.GetOffsetShell"),
    _admin("kafka-groups", f"{_TOOLS}GroupsCommand"),
    _alone("kafka-jmx", f"{_TOOLS}JmxTool"),
    _client("kafka-leader-election", "--admin.config", f"{_TOOLS}LeaderElectionCommand"),
    _admin("kafka-log-dirs", f"{_TOOLS}LogDirsCommand"),
    _admin("kafka-metadata-quorum", f"{_TOOLS}MetadataQuorumCommand"),
    Tool(
        name="kafka-producer-perf-test",
        mains=(f"{_TOOLS}ProducerPerformance",),
        server_flag_before_4_2="--producer-props",
        config_flag_before_4_2="--producer.config",
    ),
    _admin("kafka-reassign-partitions", f"{_TOOLS}reassign.ReassignPartitionsCommand"),
    Tool(
        name="kafka-replica-verification",
        mains=(f"{_TOOLS}ReplicaVerificationTool",),
        server_flag="--broker-list",
        server_flag_before_4_2="--broker-list",
        config_flag="",
        config_flag_before_4_2="",
    ),
    _client(
        "kafka-share-consumer-perf-test", "--consumer.config", f"{_TOOLS}ShareConsumerPerformance"
    ),
    _admin("kafka-share-groups", f"{_TOOLS}consumer.group.ShareGroupCommand"),
    _alone("kafka-storage", "kafka.tools.StorageTool"),
    _client("kafka-streams-application-reset", "--config-file", f"{_TOOLS}StreamsResetter"),
    _admin("kafka-streams-groups", f"{_TOOLS}streams.StreamsGroupCommand"),
    _admin("kafka-topics", f"{_TOOLS}TopicCommand", "kafka.admin.TopicCommand"),
    _admin("kafka-transactions", f"{_TOOLS}TransactionsCommand"),
    _client("kafka-verifiable-consumer", "--consumer.config", f"{_TOOLS}VerifiableConsumer"),
    _client("kafka-verifiable-producer", "--producer.config", f"{_TOOLS}VerifiableProducer"),
    _alone("kafka-server-start", "kafka.Kafka"),
    _alone("connect-distributed", "org.apache.kafka.connect.cli.ConnectDistributed"),
    _alone("connect-mirror-maker", "org.apache.kafka.connect.mirror.MirrorMaker"),
    _alone("connect-plugin-path", f"{_TOOLS}ConnectPluginPath"),
    _alone("connect-standalone", "org.apache.kafka.connect.cli.ConnectStandalone"),
)
TOOLS = {tool.name: tool for tool in _ALL}


def find_tool(name: str) -> Tool:
    """Return a tool by its name, with or without `.sh`."""
    bare = name.removesuffix(".sh")
    if bare in TOOLS:
        return TOOLS[bare]
    # Almost every name begins with "kafka-": left in, anything would be like everything.
    without_prefix = {known.removeprefix("kafka-"): known for known in TOOLS}
    near = difflib.get_close_matches(bare.removeprefix("kafka-"), without_prefix, n=1)
    hint = f" Did you mean {without_prefix[near[0]]}?" if near else ""
    raise NotFound(f"There is no tool {name!r}.{hint} Known tools: {', '.join(sorted(TOOLS))}.")


def fill_connection(
    tool: Tool, arguments: Sequence[str], connection: Connection, version: str
) -> list[str]:
    """Add to a tool's arguments what it needs to reach a cluster, unless they say it already.

    Arguments that name servers themselves may mean another cluster: they are left alone.
    """
    old = _is_before_4_2(version)
    server_flag = tool.server_flag_before_4_2 if old else tool.server_flag
    config_flag = tool.config_flag_before_4_2 if old else tool.config_flag
    if not server_flag or not needs_servers(tool, arguments):
        return list(arguments)
    filled = [server_flag, _server_value(server_flag, connection.bootstrap)]
    own_config = _says(arguments, {_CONFIG, tool.config_flag, tool.config_flag_before_4_2})
    if connection.config_file and config_flag and not own_config:
        filled += [config_flag, connection.config_file]
    return [*arguments, *filled] if tool.connection_last else [*filled, *arguments]


def _server_value(flag: str, bootstrap: str) -> str:
    return f"bootstrap.servers={bootstrap}" if flag == "--producer-props" else bootstrap


def needs_servers(tool: Tool, arguments: Sequence[str]) -> bool:
    """Tell whether a tool must be told of servers: not if it was told, or only asked for help."""
    if not tool.server_flag or {"--help", "-h", "--version"} & set(arguments):
        return False
    # Kafka's parser also takes the beginning of a flag.
    told = ("--bootstrap", "--broker-list", "bootstrap.servers=")
    return not any(argument.startswith(told) for argument in arguments)


def _says(arguments: Sequence[str], flags: set[str]) -> bool:
    return any(argument.split("=", 1)[0] in flags for argument in arguments)


def _is_before_4_2(version: str) -> bool:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return numbers < (4, 2)
