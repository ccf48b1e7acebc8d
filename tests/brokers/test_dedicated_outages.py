"""Dedicated mode that starts while one cluster is down: the restart after a disaster."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

from sparkmirror.lab.properties_file import write_properties
from tests.support.cli.command_line import CommandLine
from tests.support.cli.mirror_process import (
    SPARKMIRROR,
    MirrorProcess,
    connector_path,
    running_process,
)
from tests.support.cli.property_files import SINGLE_REPLICA
from tests.support.kafka.clusters import SharedCluster
from tests.support.waiting import wait_until

DOWN = "127.0.0.1:1"
REFUSED = f"{DOWN}: connection refused"


def test_a_node_that_starts_while_the_source_is_down_says_so_everywhere_and_stops_at_once(
    backup: SharedCluster, tmp_path: Path
) -> None:
    mark = secrets.token_hex(3)
    north, west = f"north{mark}", f"west{mark}"
    there, back = f"{north}->{west}", f"{west}->{north}"
    source, heartbeat = f"{there}.MirrorSourceConnector", f"{back}.MirrorHeartbeatConnector"
    file = flow_file(north, west, DOWN, backup.bootstrap)
    written = write_properties(tmp_path / "mm2.properties", file)
    with running_process([*SPARKMIRROR, "run", str(written)], tmp_path / "run") as program:
        listed = set(program.get_json("/connectors"))
        kinds = ("Source", "Checkpoint", "Heartbeat")
        assert listed == {*(f"{there}.Mirror{kind}Connector" for kind in kinds), heartbeat}
        for connector in (source, heartbeat):
            wait_until(
                partial(has_in_trace, program, REFUSED, connector), f"the trace of {connector}"
            )
        assert set(program.get_json("/connectors")) == listed
        offsets = program.request("GET", f"{connector_path(heartbeat)}/offsets")
        assert (offsets.status, REFUSED in offsets.message) == (503, True)
        health = program.get_json("/health")
        assert health["status"] == "degraded"
        assert health["message"].startswith(f"{there}: ")
        status = CommandLine({}).run("status", "--url", program.address)
        assert status.exit_code == 2, status.stderr
        assert REFUSED in status.stdout
        explained = CommandLine({}).run("groups", "explain", "--url", program.address)
        assert explained.exit_code == 2, explained.stderr
        assert REFUSED in explained.stdout
        assert "start one" not in explained.stdout
        program.stop()
        assert "failed to properly shut down" not in program.output


def test_a_wrong_setting_is_named_with_file_and_line_in_the_status_and_the_log(
    backup: SharedCluster, tmp_path: Path
) -> None:
    """TLS to a listener without it: for a connector, and for the worker of the way back."""
    mark = secrets.token_hex(3)
    north, west = f"north{mark}", f"west{mark}"
    file = flow_file(north, west, backup.bootstrap, backup.bootstrap)
    key = f"{north}.security.protocol"
    written = write_properties(tmp_path / "mm2.properties", {**file, key: "SSL"})
    lines = written.read_text(encoding="utf-8").splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if text.startswith(key)]
    place = f"{written}, line {line}: {key}"
    with running_process([*SPARKMIRROR, "run", str(written)], tmp_path / "run") as program:
        for connector in (
            f"{north}->{west}.MirrorSourceConnector",
            f"{west}->{north}.MirrorHeartbeatConnector",
        ):
            wait_until(
                partial(has_in_trace, program, place, connector),
                f"{place} in the trace of {connector}",
            )
        program.stop()
        assert place in program.output


def flow_file(source: str, target: str, source_servers: str, target_servers: str) -> dict[str, str]:
    """The properties of a node with one flow."""
    return {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": source_servers,
        f"{target}.bootstrap.servers": target_servers,
        f"{source}->{target}.enabled": "true",
        "listeners": "http://127.0.0.1:0",
        **{
            f"{name}replication.factor": "1"
            for name in ("", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic.")
        },
        **SINGLE_REPLICA,
    }


def has_in_trace(program: MirrorProcess, text: str, connector: str) -> bool:
    """Whether the connector's trace contains a text."""
    status = program.get_json(f"{connector_path(connector)}/status")
    return text in status["connector"].get("trace", "")
