"""MirrorMaker 1 (`kafka-mirror-maker.sh`), run as a MirrorMaker 2 flow.

Two client files and a pattern become one flow with equal topic names and without heartbeats,
checkpoints and syncs. Two things differ from MirrorMaker 1: records keep their partition, and the
target cluster holds the source offsets, not the consumer group on the source. Options that name
Java classes are rejected.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from sparkmirror.cli.config.start_validation import require_valid_client_files
from sparkmirror.cli.kafka_opts import java_notes, with_metrics_listener
from sparkmirror.cli.log_output import LogFormat, install_log
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import Properties, PropertyEntry, load_properties
from sparkmirror.errors import BadRequest
from sparkmirror.worker.mirror_maker import MirrorMaker
from sparkmirror.worker.shutdown_signal import ShutdownSignal

log = logging.getLogger(__name__)

SOURCE, TARGET = "source", "target"
_UNSUPPORTED_OPTIONS = ("message.handler", "consumer.rebalance.listener")
_CLIENT_ONLY = ("group.id", "client.id")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadRequest(f"{message}\n{self.format_usage().rstrip()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorMaker1Arguments:
    """The command line of `kafka-mirror-maker.sh`."""

    consumer: Path
    producer: Path
    include: str
    streams: int
    commit_ms: int

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Self:
        """Return the parsed command line. Raises BadRequest, which names the wrong argument."""
        parser = _Parser(prog="kafka-mirror-maker", allow_abbrev=False, add_help=True)
        add = parser.add_argument
        add("--consumer.config", dest="consumer", type=Path, required=True, metavar="FILE")
        add("--producer.config", dest="producer", type=Path, required=True, metavar="FILE")
        add("--include", "--whitelist", dest="include", required=True, metavar="REGEX")
        add("--num.streams", dest="streams", type=int, default=1, metavar="N")
        add("--offset.commit.interval.ms", dest="commit_ms", type=int, default=60_000)
        add("--abort.on.send.failure", dest="_abort", default="true")
        add("--new.consumer", dest="_new", action="store_true")
        add("--message.handler.args", dest="_handler_args")
        add("--rebalance.listener.args", dest="_listener_args")
        for name in _UNSUPPORTED_OPTIONS:
            add(f"--{name}", dest=name.replace(".", "_"))
        found = parser.parse_args(list(arguments))
        for name in _UNSUPPORTED_OPTIONS:
            if getattr(found, name.replace(".", "_")):
                raise BadRequest(f"--{name} names Java code, which cannot run here; leave it out")
        return cls(
            consumer=found.consumer,
            producer=found.producer,
            include=found.include,
            streams=found.streams,
            commit_ms=found.commit_ms,
        )


def run_mirror_maker_1(arguments: MirrorMaker1Arguments, log_format: LogFormat) -> int:
    """Mirror until a signal stops the process; return the exit code. Blocks."""
    flow = mm2_properties(
        arguments,
        load_properties(arguments.consumer).mapping,
        load_properties(arguments.producer).mapping,
    )
    flow = with_metrics_listener(flow, os.environ)
    require_valid_client_files(flow, os.environ)
    shutdown = ShutdownSignal()
    shutdown.install()
    install_log(log_format, os.environ)
    for note in java_notes(os.environ):
        log.warning("%s", note)
    log.warning(
        "MirrorMaker 1 is gone from Kafka 4; this runs as a flow with equal topic names. The same"
        " as an mm2.properties: clusters=%s,%s and %s->%s.enabled=true",
        *(SOURCE, TARGET, SOURCE, TARGET),
    )
    return MirrorMaker(MirrorMakerConfig.open(flow, os.environ), (), os.environ).run(shutdown)


def mm2_properties(
    arguments: MirrorMaker1Arguments, consumer: Mapping[str, str], producer: Mapping[str, str]
) -> Properties:
    """Return the mm2.properties with the same meaning."""
    values = {
        "clusters": f"{SOURCE},{TARGET}",
        **_cluster_properties(SOURCE, "consumer", consumer),
        **_cluster_properties(TARGET, "producer", producer),
        f"{SOURCE}->{TARGET}.enabled": "true",
        f"{SOURCE}->{TARGET}.topics": arguments.include,
        f"{TARGET}->{SOURCE}.emit.heartbeats.enabled": "false",
        "tasks.max": str(arguments.streams),
        f"{TARGET}.offset.flush.interval.ms": str(arguments.commit_ms),
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "replication.factor": "-1",
        **{
            f"{name}.replication.factor": "-1"
            for name in ("offset.storage", "config.storage", "status.storage")
        },
        **{
            f"{name}.enabled": "false"
            for name in (
                *("emit.heartbeats", "emit.checkpoints", "emit.offset-syncs"),
                *("sync.topic.configs", "sync.topic.acls", "sync.group.offsets"),
            )
        },
    }
    entries = (
        PropertyEntry(key, value, line) for line, (key, value) in enumerate(values.items(), 1)
    )
    name = f"{arguments.consumer.name} and {arguments.producer.name}"
    return Properties(name, tuple(entries), ())


def _cluster_properties(alias: str, kind: str, client: Mapping[str, str]) -> dict[str, str]:
    """Return a client's file as properties of a cluster.

    Addresses and security settings apply to all clients of the cluster, the rest to this client.
    """
    properties = {}
    for name, value in client.items():
        if name in _CLIENT_ONLY:
            continue
        properties[f"{alias}.{kind}.{name}"] = value
        if name == "bootstrap.servers" or name.startswith(("security.", "sasl.", "ssl.")):
            properties[f"{alias}.{name}"] = value
    return properties
