"""Who runs: Java MirrorMaker 2 as it comes and tuned, sparkmirror, and a loop written by hand.

Each becomes a command line, started as its users start it. Knows their settings; knows nothing
about clusters, clocks or results.
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
from sparkmirror.lab.cluster.properties_file import write_properties
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner

ROOT = Path(__file__).parents[1]
"""Where `python -m bench...` finds us."""
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
"""Heap and collector as connect-mirror-maker.sh gives them to Java."""

TUNED_PRODUCER = {"batch.size": str(512 << 10), "linger.ms": "50", "buffer.memory": str(64 << 20)}
TUNED_CONSUMER = {
    "max.poll.records": "5000",
    "fetch.max.bytes": str(50 << 20),
    "max.partition.fetch.bytes": str(4 << 20),
    "receive.buffer.bytes": "-1",
}
"""What people raise to catch up: larger fetches, and a window that the system may widen."""


class System(enum.StrEnum):
    """The contestants, as results name them."""

    MM2_DEFAULT = "mm2-default"
    MM2_TUNED = "mm2-tuned"
    PLAIN_LOOP = "plain-loop"
    SPARKMIRROR = "sparkmirror"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to start somebody, and how its users end it."""

    argv: list[str]
    stop_signal: signal.Signals = signal.SIGTERM
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


def start_command(who: System, flow: Flow, directory: Path) -> Command:
    """Say how a contestant is started for a flow; `directory` is its own."""
    return _COMMANDS[who](flow, directory)


def mirror_maker_properties(flow: Flow, *, tuned: bool) -> dict[str, str]:
    """An mm2.properties of one flow that does nothing but copy."""
    arrow = f"{flow.alias}->{TARGET}"
    properties = {
        "clusters": f"{flow.alias}, {TARGET}",
        f"{flow.alias}.bootstrap.servers": flow.source,
        f"{TARGET}.bootstrap.servers": flow.target,
        f"{arrow}.enabled": "true",
        f"{arrow}.topics": ", ".join(flow.topics),
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        # The others copy only; so that Java has no more to do than they:
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
    }
    if not tuned:
        return properties
    producer = TUNED_PRODUCER
    if flow.codec != "none":
        producer = producer | {"compression.type": flow.codec}
    return {
        **properties,
        "tasks.max": str(os.cpu_count() or 1),
        **{f"{TARGET}.producer.{key}": value for key, value in producer.items()},
        **{f"{flow.alias}.consumer.{key}": value for key, value in TUNED_CONSUMER.items()},
    }


def _mirror_maker(flow: Flow, directory: Path, *, tuned: bool) -> Command:
    file = write_properties(
        directory / "mm2.properties", mirror_maker_properties(flow, tuned=tuned)
    )
    tools = KafkaToolRunner(jvm=SCRIPT_JVM)
    words = tools.command("connect-mirror-maker", [str(file), "--clusters", TARGET])
    return Command(argv=words)


def _mirror_maker_default(flow: Flow, directory: Path) -> Command:
    return _mirror_maker(flow, directory, tuned=False)


def _mirror_maker_tuned(flow: Flow, directory: Path) -> Command:
    return _mirror_maker(flow, directory, tuned=True)


def _sparkmirror(flow: Flow, directory: Path) -> Command:
    return Command(
        argv=[
            *(sys.executable, "-m", "sparkmirror", "copy"),
            *("--from", flow.source, "--to", flow.target),
            *("--topics", ",".join(flow.topics)),
            *("--policy", "default", "--source-alias", flow.alias, "--name", flow.alias),
            "--yes",
        ],
        stop_signal=signal.SIGINT,
        environ={**os.environ, "XDG_STATE_HOME": str(directory)},
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
