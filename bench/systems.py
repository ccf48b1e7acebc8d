"""The compared systems: Java MirrorMaker 2 (default and tuned), sparkmirror and a plain loop.

Each system has a command line and settings, as an operator would start it.
"""

from __future__ import annotations

import enum
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.flow import Flow
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.lab.properties_file import write_properties

ROOT = Path(__file__).parents[1]
"""The directory in which `python -m bench...` works."""
TARGET = "target"
SCRIPT_JVM = JvmOptions(
    heap_mb=2048,
    log_level="INFO",
    fast_start=False,
    extra_options=(
        *("-Xms256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
        *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    ),
)
"""The heap and garbage collector options of connect-mirror-maker.sh."""

TUNED_PRODUCER = {"batch.size": str(512 << 10), "linger.ms": "50", "buffer.memory": str(64 << 20)}
TUNED_CONSUMER = {
    "max.poll.records": "5000",
    "fetch.max.bytes": str(50 << 20),
    "max.partition.fetch.bytes": str(4 << 20),
    "receive.buffer.bytes": "-1",
}
"""Usual tuning for catching up: larger fetches, and a TCP window that the kernel may widen."""

TUNED_TASKS = os.cpu_count() or 1
"""One task per core."""

_ONLY_COPY = {"emit.heartbeats.enabled": "false", "emit.checkpoints.enabled": "false"}
"""The other systems only copy records, so Java must not do more."""
_INTERNAL_TOPICS = {
    "heartbeats.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
}


class System(enum.StrEnum):
    """The compared systems. Result files hold these names."""

    MM2_DEFAULT = "mm2-default"
    MM2_TUNED = "mm2-tuned"
    PLAIN_LOOP = "plain-loop"
    SPARKMIRROR = "sparkmirror"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command that starts a system, and the signal that stops it."""

    argv: list[str]
    stop_signal: signal.Signals = signal.SIGTERM
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


def start_command(system: System, flow: Flow, directory: Path) -> Command:
    """Return the command that starts a system for a flow. Only this run uses `directory`."""
    return _COMMANDS[system](flow, directory)


def mirror_maker_properties(flow: Flow, *, tuned: bool) -> dict[str, str]:
    """Return the mm2.properties of one flow."""
    arrow = f"{flow.alias}->{TARGET}"
    transforms = flow.chain.properties if flow.chain else {}
    properties = {
        "clusters": f"{flow.alias}, {TARGET}",
        f"{flow.alias}.bootstrap.servers": flow.source,
        f"{TARGET}.bootstrap.servers": flow.target,
        **{f"{flow.alias}.{key}": value for key, value in flow.source_client.items()},
        **{f"{TARGET}.{key}": value for key, value in flow.target_client.items()},
        f"{arrow}.enabled": "true",
        f"{arrow}.topics": ", ".join(flow.topics),
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        **(_INTERNAL_TOPICS if flow.all_connectors else _ONLY_COPY),
        **{f"{arrow}.{key}": value for key, value in transforms.items()},
        **({"tasks.max": str(flow.tasks)} if flow.tasks > 1 else {}),
    }
    if not tuned:
        return properties
    producer = TUNED_PRODUCER
    if flow.codec != "none":
        producer = producer | {"compression.type": flow.codec}
    return {
        **properties,
        "tasks.max": str(TUNED_TASKS),
        **{f"{TARGET}.producer.{key}": value for key, value in producer.items()},
        **{f"{flow.alias}.consumer.{key}": value for key, value in TUNED_CONSUMER.items()},
    }


def _mirror_maker(flow: Flow, directory: Path, *, tuned: bool) -> Command:
    file = write_properties(
        directory / "mm2.properties", mirror_maker_properties(flow, tuned=tuned)
    )
    tools = KafkaToolRunner(jvm=SCRIPT_JVM)
    return Command(argv=tools.command("connect-mirror-maker", [str(file), "--clusters", TARGET]))


def _mirror_maker_default(flow: Flow, directory: Path) -> Command:
    return _mirror_maker(flow, directory, tuned=False)


def _mirror_maker_tuned(flow: Flow, directory: Path) -> Command:
    return _mirror_maker(flow, directory, tuned=True)


def _sparkmirror(flow: Flow, directory: Path) -> Command:
    """Return `sparkmirror copy`, or `sparkmirror run` for a flow that needs dedicated mode."""
    environ = {**os.environ, "XDG_STATE_HOME": str(directory)}
    if flow.chain is not None or flow.all_connectors:
        properties = mirror_maker_properties(flow, tuned=False)
        if flow.epoch_s is not None:
            properties["sparkmirror.epoch.seconds"] = str(flow.epoch_s)
        file = write_properties(directory / "mm2.properties", properties)
        argv = [sys.executable, "-m", "sparkmirror", "run", str(file), "--clusters", TARGET]
        return Command(argv=argv, environ=environ)
    source = write_properties(directory / "source.properties", flow.source_client)
    target = write_properties(directory / "target.properties", flow.target_client)
    return Command(
        argv=[
            *(sys.executable, "-m", "sparkmirror", "copy"),
            *("--from", flow.source, "--to", flow.target),
            *("--topics", ",".join(flow.topics)),
            *("--policy", "default", "--source-alias", flow.alias, "--name", flow.alias),
            *("--source-config", str(source), "--target-config", str(target)),
            "--yes",
        ],
        stop_signal=signal.SIGINT,
        environ=environ,
    )


def _plain_loop(flow: Flow, _: Path) -> Command:
    return Command(
        argv=[
            *(sys.executable, "-m", "bench.consume_produce_loop"),
            *(flow.source, flow.target, flow.alias, flow.codec, *flow.topics),
        ]
    )


_COMMANDS: dict[System, Callable[[Flow, Path], Command]] = {
    System.MM2_DEFAULT: _mirror_maker_default,
    System.MM2_TUNED: _mirror_maker_tuned,
    System.PLAIN_LOOP: _plain_loop,
    System.SPARKMIRROR: _sparkmirror,
}
