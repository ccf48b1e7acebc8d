"""Three worker processes of one group are killed, suspended and restarted in turn.

Heartbeat connectors need no Spark, so this shows membership, shares and requests across workers.
"""

from __future__ import annotations

import secrets
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.lab.processes.port_registry import PortRegistry
from tests.support.cli.mirror_process import (
    MirrorProcess,
    running_mirror_maker,
    running_worker,
)
from tests.support.cli.property_files import SINGLE_REPLICA, worker_properties
from tests.support.connect.connector_context import connector_config
from tests.support.kafka.clusters import SharedCluster
from tests.support.waiting import wait_until

CONNECTORS = 6
WORKERS = ("w1", "w2", "w3")


class WorkerProcesses:
    """The workers, each on a port of its own, started and ended one by one."""

    def __init__(
        self, properties: dict[str, str], directory: Path, ports: dict[str, int], stack: ExitStack
    ) -> None:
        self._properties = properties
        self._directory = directory
        self._ports = ports
        self._stack = stack
        self._starts = Counter[str]()
        self.running: dict[str, MirrorProcess] = {}

    def start(self, name: str) -> MirrorProcess:
        """Start a worker; return when it has its share."""
        self._starts[name] += 1
        directory = self._directory / f"{name}-{self._starts[name]}"
        properties = {**self._properties, "listeners": f"http://127.0.0.1:{self._ports[name]}"}
        worker = self._stack.enter_context(running_worker(properties, directory))
        wait_until(lambda: worker.request("GET", "/health").status == 200, f"{name} to be ready")
        self.running[name] = worker
        return worker

    def worker_id(self, name: str) -> str:
        return f"127.0.0.1:{self._ports[name]}"

    def statuses(self, asked: str) -> dict[str, Any]:
        """The statuses of all connectors, as one worker answers."""
        answer = self.running[asked].get_json("/connectors?expand=status")
        return {name: entry["status"] for name, entry in answer.items()}

    def owners(self, asked: str) -> Counter[str]:
        """How many connectors and tasks run on each worker, as one worker answers."""
        parts = [
            part
            for status in self.statuses(asked).values()
            for part in (status["connector"], *status["tasks"])
        ]
        return Counter(part["worker_id"] for part in parts if part["state"] == "RUNNING")

    def wait_for_shares(self, **shares: int) -> None:
        """Wait until these workers run so many connectors and tasks, by every worker's answer."""
        expected = {self.worker_id(name): count for name, count in shares.items()}
        wait_until(
            lambda: all(dict(self.owners(asked)) == expected for asked in shares),
            f"{expected}, not {self.owners(next(iter(shares)))}",
            timeout_s=90,
        )


@pytest.fixture(scope="module")
def workers(
    shared_clusters: dict[str, SharedCluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerProcesses]:
    """Three workers with equal shares. A test leaves them so."""
    primary, backup = shared_clusters["primary"], shared_clusters["backup"]
    directory = tmp_path_factory.mktemp("workers")
    group = f"workers-{secrets.token_hex(4)}"
    ports = dict(zip(WORKERS, PortRegistry().claim(3, directory), strict=True))
    with ExitStack() as stack:
        made = WorkerProcesses(worker_properties(backup, group), directory, ports, stack)
        made.start("w1")
        for number in range(CONNECTORS):
            name = f"{group}-heartbeat-{number}"
            config = connector_config("Heartbeat", name, primary, backup)
            made.running["w1"].call_json("PUT", f"/connectors/{name}/config", config)
        made.wait_for_shares(w1=2 * CONNECTORS)
        made.start("w2")
        made.start("w3")
        made.wait_for_shares(w1=4, w2=4, w3=4)
        yield made


def test_a_killed_workers_work_runs_elsewhere_and_comes_back_with_it(
    workers: WorkerProcesses,
) -> None:
    workers.running.pop("w3").send_signal(signal.SIGKILL)
    workers.wait_for_shares(w1=6, w2=6)
    workers.start("w3")
    workers.wait_for_shares(w1=4, w2=4, w3=4)


def test_a_connector_created_and_deleted_through_a_follower_runs_on_one_worker(
    workers: WorkerProcesses,
) -> None:
    name = next(iter(workers.statuses("w2")))
    config = workers.running["w2"].get_json(f"/connectors/{name}/config")
    new = f"{name}-copy"
    for asked, other in (("w2", "w3"), ("w3", "w2")):
        path = f"/connectors/{new}"
        workers.running[asked].call_json("PUT", f"{path}/config", {**config, "name": new})
        workers.running[other].wait_for_states(new, "RUNNING", "RUNNING")
        workers.running[other].call_json("POST", f"{path}/restart?includeTasks=true")
        workers.running[other].call_json("POST", f"{path}/restart")
        workers.running[other].call_json("POST", f"{path}/tasks/0/restart")
        workers.running[other].wait_for_states(new, "RUNNING", "RUNNING")
        workers.running[asked].call_json("DELETE", path)
    workers.wait_for_shares(w1=4, w2=4, w3=4)


def test_a_suspended_leader_gives_way_and_joins_again(workers: WorkerProcesses) -> None:
    leader = workers.running.pop("w1")
    leader.send_signal(signal.SIGSTOP)
    workers.wait_for_shares(w2=6, w3=6)
    leader.send_signal(signal.SIGCONT)
    workers.running["w1"] = leader
    workers.wait_for_shares(w1=4, w2=4, w3=4)
    assert "This worker was away for too long" in leader.output


def test_a_rolling_restart_keeps_everything_running(workers: WorkerProcesses) -> None:
    for name in WORKERS:
        workers.running.pop(name).stop()
        workers.wait_for_shares(**dict.fromkeys(workers.running, 6))
        workers.start(name)
        workers.wait_for_shares(w1=4, w2=4, w3=4)


def test_nodes_of_dedicated_mode_with_internal_rest_share_the_connectors_of_a_flow(
    primary: SharedCluster, backup: SharedCluster, tmp_path: Path
) -> None:
    source, target = f"a{secrets.token_hex(3)}", f"b{secrets.token_hex(3)}"
    flow = f"{source}->{target}"
    file = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": primary.bootstrap,
        f"{target}.bootstrap.servers": backup.bootstrap,
        f"{flow}.enabled": "true",
        f"{flow}.topics": "no-such-topic",
        f"{flow}.groups": "no-such-group",
        f"{target}->{source}.emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "emit.heartbeats.interval.seconds": "1",
        "dedicated.mode.enable.internal.rest": "true",
        "replication.factor": "1",
        **{
            f"{name}.topic.replication.factor": "1"
            for name in ("offset-syncs", "checkpoints", "heartbeats")
        },
        **SINGLE_REPLICA,
    }
    first_port, second_port = PortRegistry().claim(2, tmp_path)

    def node(port: int, name: str) -> MirrorProcess:
        listeners = {"listeners": f"http://127.0.0.1:{port}"}
        return stack.enter_context(
            running_mirror_maker({**file, **listeners}, tmp_path / name, "--clusters", target)
        )

    def owners(asked: MirrorProcess) -> set[str]:
        """The nodes that run connectors of the flow, if all three run."""
        found = asked.get_json("/connectors?expand=status").values()
        parts = [entry["status"]["connector"] for entry in found]
        assert all(
            part["worker_id"].endswith(f"/{flow}") or not part["worker_id"] for part in parts
        )
        running = [part for part in parts if part["state"] == "RUNNING"]
        return {part["worker_id"] for part in running} if len(running) == 3 else set()

    with ExitStack() as stack:
        first = node(first_port, "first")
        first_id, second_id = (f"127.0.0.1:{port}/{flow}" for port in (first_port, second_port))
        wait_until(lambda: owners(first) == {first_id}, "the first node", timeout_s=90)
        second = node(second_port, "second")
        both = {first_id, second_id}
        wait_until(lambda: owners(second) == both, "shares of both nodes", timeout_s=90)
        wait_until(lambda: owners(first) == both, "the same view", timeout_s=90)
        first.send_signal(signal.SIGKILL)
        wait_until(lambda: owners(second) == {second_id}, "the second node alone", timeout_s=90)
        assert "This node is now a leader" in second.output
