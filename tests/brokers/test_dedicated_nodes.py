"""Two nodes of dedicated mode with internal REST: one group per flow, and either node answers.

The flow is disabled, so that only its heartbeat connector runs: it needs no Spark.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.properties_file import write_properties
from tests.support.cli.mirror_process import (
    SPARKMIRROR,
    MirrorProcess,
    connector_path,
    running_process,
)
from tests.support.cli.property_files import SINGLE_REPLICA
from tests.support.kafka.clusters import SharedCluster
from tests.support.waiting import wait_until

CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"


@pytest.fixture
def flow() -> str:
    """A flow whose group and topics no other test has."""
    mark = secrets.token_hex(3)
    return f"east{mark}->south{mark}"


@pytest.fixture
def nodes(backup: SharedCluster, flow: str, tmp_path: Path) -> Iterator[dict[str, MirrorProcess]]:
    """Two nodes, by the beginning of their worker ids."""
    source, target = flow.split("->")
    with ExitStack() as stack:
        found = {}
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            [port] = PortRegistry().claim(1, tmp_path / name)
            file = {
                "clusters": f"{source}, {target}",
                f"{source}.bootstrap.servers": backup.bootstrap,
                f"{target}.bootstrap.servers": backup.bootstrap,
                f"{flow}.enabled": "false",
                f"{target}->{source}.emit.heartbeats.enabled": "false",
                "dedicated.mode.enable.internal.rest": "true",
                "listeners": f"http://127.0.0.1:{port}",
                "emit.heartbeats.interval.seconds": "1",
                "heartbeats.topic.replication.factor": "1",
                "replication.factor": "1",
                **SINGLE_REPLICA,
            }
            written = write_properties(tmp_path / name / "mm2.properties", file)
            command = [*SPARKMIRROR, "run", str(written)]
            program = stack.enter_context(running_process(command, tmp_path / name / "run"))
            found[f"127.0.0.1:{port}/"] = program
        yield found


def owner_of(node: MirrorProcess, connector: str) -> str:
    """The worker of a connector that runs with its task, as a node shows it; else empty."""
    answer = node.request("GET", f"{connector_path(connector)}/status")
    if answer.status != 200:
        return ""
    found = answer.json
    states = [found["connector"]["state"], *(task["state"] for task in found["tasks"])]
    return str(found["connector"]["worker_id"]) if states == ["RUNNING", "RUNNING"] else ""


def test_either_node_answers_and_a_restart_is_made_by_the_node_that_runs_the_connector(
    nodes: dict[str, MirrorProcess], flow: str
) -> None:
    heartbeat = f"{flow}.MirrorHeartbeatConnector"
    source, target = flow.split("->")
    first, second = nodes.values()

    def is_shared() -> bool:
        owners = {owner_of(node, heartbeat) for node in nodes.values()}
        return "with 2 workers" in second.output and len(owners) == 1 and "" not in owners

    wait_until(is_shared, "both nodes to show the running connector")
    owner_id = owner_of(first, heartbeat)
    assert owner_id.endswith(f"/{flow}")
    path = connector_path(heartbeat)
    for worker, node in nodes.items():
        is_owner = owner_id.startswith(worker)
        alone = node.request("POST", f"{path}/restart?forward=false")
        assert alone.status == (204 if is_owner else 409)
        assert is_owner or alone.message == CONFLICT
        assert node.request("POST", f"{path}/restart").status == 204
        assert node.request("POST", f"{path}/restart?includeTasks=true").status == 202
        wait_until(is_shared, "the connector to run again")
        progress = node.get_json(f"{connector_path(f'{flow}.MirrorSourceConnector')}/partitions")
        assert "unreachable_workers" not in progress
        unsigned = node.request("PUT", f"/{source}/{target}/connectors/x/fence")
        assert (unsigned.status, unsigned.message) == (
            400,
            "Internal request missing required signature",
        )
    assert second.request("PUT", f"{path}/pause").status == 202
    wait_until(
        lambda: first.get_json(f"{path}/status")["connector"]["state"] == "PAUSED", "the pause"
    )
