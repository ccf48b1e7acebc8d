"""REST, a log and a group while the cluster of Connect's topics does not run, or does not answer.

They share one outage in which no broker runs.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sparkmirror.connect.herder.herder import ConnectorOffset
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.mirror.offsets.records import RecordBytes
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, named_config, poll_until
from tests.support.connect.kafka_herder import running_kafka_herder, worker_config
from tests.support.connect.log_collector import LogCollector, collecting_log, create_compacted_topic
from tests.support.connect.worker_group import HerderGroup
from tests.support.kafka.clusters import SharedCluster, StartCluster
from tests.support.one_outage import OutageResult, run_in_one_outage
from tests.support.rest.rest_client import (
    RestClient,
    RestResponse,
    request_once,
    running_rest_server,
)
from tests.support.waiting import wait_until

NAME = "outage"
TASKS = 4
RUNNING = ("RUNNING", "RUNNING", "RUNNING")
PARTITION = {"cluster": "source", "topic": "orders", "partition": 0}
LONGEST_S = 20.0
"""A change fails within 10 s. A busy computer needs some more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """How the cluster becomes unavailable, how it comes back, and what the errors say."""

    begin: Callable[[Cluster], None]
    end: Callable[[Cluster], None]
    cause: str

    @contextmanager
    def of(self, cluster: Cluster) -> Iterator[None]:
        """Make the cluster unavailable in the block."""
        self.begin(cluster)
        try:
            yield
        finally:
            self.end(cluster)


OUTAGES = {
    "dead": Outage(
        begin=lambda cluster: cluster.kill(),
        end=lambda cluster: cluster.start_brokers(),
        cause="connection refused",
    ),
    "frozen": Outage(
        begin=lambda cluster: cluster.pause_broker(1),
        end=lambda cluster: cluster.resume_broker(1),
        cause="no answer",
    ),
}
CHANGES: dict[str, tuple[str, str, Any]] = {
    "pause": ("PUT", "/connectors/c/pause", None),
    "stop": ("PUT", "/connectors/c/stop", None),
    "config": ("PUT", "/connectors/c/config", SOURCE_CONFIG),
    "create": ("POST", "/connectors", {"name": "new", "config": SOURCE_CONFIG}),
    "delete": ("DELETE", "/connectors/c", None),
    "offsets": (
        *("PATCH", "/connectors/stopped/offsets"),
        {"offsets": [{"partition": PARTITION, "offset": {"offset": 9}}]},
    ),
}
READS = (
    *("/", "/connectors", "/connectors?expand=info&expand=status", "/connectors/c"),
    *("/connectors/c/status", "/connectors/c/tasks", "/connectors/c/topics"),
    *("/connectors/stopped/offsets", "/connectors/c/offsets"),
)


@pytest.fixture(scope="module")
def cluster(start_module_cluster: StartCluster) -> Cluster:
    return start_module_cluster(ClusterSpec(name=NAME, fast_start=True))


@pytest.fixture(scope="module")
def dead(cluster: Cluster) -> OutageResult:
    """An outage in which no broker runs. The changes come first: they are to fail in time."""
    scenarios = {
        "changes": changes_in_outage(cluster, OUTAGES["dead"]),
        "log": start_of_a_log(cluster),
        "group": group_of_workers(cluster),
    }
    return run_in_one_outage(scenarios, OUTAGES["dead"].of(cluster))


@pytest.fixture(scope="module")
def frozen(cluster: Cluster) -> OutageResult:
    """An outage in which the broker answers nothing."""
    scenarios = {"changes": changes_in_outage(cluster, OUTAGES["frozen"])}
    return run_in_one_outage(scenarios, OUTAGES["frozen"].of(cluster))


@pytest.mark.parametrize("kind", OUTAGES)
def test_changes_fail_in_time_with_the_cause_and_reads_are_answered_meanwhile(
    request: pytest.FixtureRequest, kind: str
) -> None:
    result: OutageResult = request.getfixturevalue(kind)
    result.check("changes")


def test_start_of_a_log_waits_for_unavailable_brokers(dead: OutageResult) -> None:
    dead.check("log")


def test_a_group_goes_on_after_an_outage_of_its_cluster(dead: OutageResult) -> None:
    dead.check("group")


def shared_cluster(cluster: Cluster) -> SharedCluster:
    return SharedCluster(name=NAME, properties=cluster.client_properties())


def changes_in_outage(cluster: Cluster, outage: Outage) -> Iterator[None]:
    shared = shared_cluster(cluster)
    config = worker_config(shared, f"worker-{secrets.token_hex(3)}")
    with (
        running_kafka_herder(shared, config, "here:8083") as harness,
        running_rest_server(harness.herder) as server,
        ThreadPoolExecutor(len(CHANGES)) as clients,
    ):
        for name in ("c", "stopped"):
            harness.herder.create_connector(name, named_config(name, SOURCE_CONFIG), None)
            harness.wait_for_states(name, *RUNNING)
        harness.herder.stop_connector("stopped")
        stored = ConnectorOffset(partition=PARTITION, offset={"offset": 3})
        harness.herder.alter_connector_offsets("stopped", [stored])
        yield
        began = time.monotonic()
        answers = {
            what: clients.submit(send_change, server.address, *change)
            for what, change in CHANGES.items()
        }
        reads = {path: request_once(server.address, "GET", path) for path in READS}
        health = request_once(server.address, "GET", "/health")
        waiting = [what for what, answer in answers.items() if not answer.done()]
        assert waiting == list(CHANGES), "reads do not wait for the writes"
        for what, answer in answers.items():
            check_failure(what, answer.result(), outage.cause)
        assert time.monotonic() - began < LONGEST_S
        assert {path: read.status for path, read in reads.items()} == dict.fromkeys(READS, 200)
        assert reads["/connectors/stopped/offsets"].json["offsets"][0]["offset"] == {"offset": 3}
        assert health.json["status"] in {"healthy", "degraded", "unhealthy"}
        poll_until(lambda: is_unhealthy(server.address, outage.cause), "the cause in /health")
        yield
        poll_until(lambda: is_healthy(server.address), "health after the outage", 120)
        resumed = request_once(server.address, "PUT", "/connectors/stopped/resume")
        assert resumed.status == 202
        harness.wait_for_states("stopped", *RUNNING)


def start_of_a_log(cluster: Cluster) -> Iterator[None]:
    topic, record = f"log-{secrets.token_hex(3)}", RecordBytes(b"a", b"1")
    create_compacted_topic(cluster.access(), topic)
    with collecting_log(cluster.access(), topic) as first:
        first.log.append([record])
    yield
    late = LogCollector(cluster.access(), topic)
    starting = threading.Thread(target=late.log.start, args=[late.entries.append])
    starting.start()
    try:
        cause = OUTAGES["dead"].cause
        wait_until(lambda: cause in late.log.problem(), "the log to say why it waits")
        assert starting.is_alive()
        yield
        starting.join(120)
        assert late.records == [record]
    finally:
        late.log.stop()
    assert not starting.is_alive()


def group_of_workers(cluster: Cluster) -> Iterator[None]:
    group = HerderGroup(shared_cluster(cluster), f"workers-{secrets.token_hex(3)}")
    try:
        group.start("w1")
        group.start("w2")
        create_on_both(group, "c")
        before = assigned_tasks(group, "c")
        yield
        wait_until(lambda: have_health(group, "unhealthy"), "both workers to be unhealthy")
        assert group.running_tasks("c") == list(range(TASKS))
        yield
        wait_until(lambda: have_health(group, "healthy"), "both workers to be healthy", 120)
        create_on_both(group, "d")
        assert assigned_tasks(group, "c") == before
        assert not any("stop tasks c" in one.probe.calls for one in group.workers.values())
    finally:
        group.stop_all()


def create_on_both(group: HerderGroup, name: str) -> None:
    """Create a connector, and wait until each worker runs half of its tasks."""
    config = named_config(name, SOURCE_CONFIG, tasks__max=str(TASKS))
    group.leader().create_connector(name, config, None)
    half = TASKS // 2
    wait_until(
        lambda: (
            group.running_tasks(name) == list(range(TASKS))
            and Counter(group.owners(name)) == dict.fromkeys(group.workers, half)
        ),
        f"{half} tasks of {name} on each worker",
    )


def assigned_tasks(group: HerderGroup, name: str) -> dict[str, list[int]]:
    """The tasks of a connector by worker, as the leader has assigned them."""
    found = {worker_id: one.herder.assignment() for worker_id, one in group.workers.items()}
    return {
        worker_id: sorted(assignment.own_share.task_numbers(name)) if assignment else []
        for worker_id, assignment in found.items()
    }


def have_health(group: HerderGroup, status: str) -> bool:
    return all(one.herder.health().status == status for one in group.workers.values())


def send_change(address: str, method: str, path: str, body: Any) -> RestResponse:
    client = RestClient(address, timeout_s=100)
    try:
        if body is None:
            return client.request(method, path)
        return client.send_json(method, path, body)
    finally:
        client.close()


def check_failure(what: str, answer: RestResponse, cause: str) -> None:
    """The answer names the cluster and the cause: its own error, or what it had to wait for."""
    assert answer.status == 500, (what, answer.content)
    message = answer.message
    assert NAME in message, (what, message)
    assert cause in message or "The worker is currently writing" in message, (what, message)


def is_unhealthy(address: str, cause: str) -> bool:
    health = request_once(address, "GET", "/health").json
    return health["status"] == "unhealthy" and cause in health["message"]


def is_healthy(address: str) -> bool:
    return bool(request_once(address, "GET", "/health").json["status"] == "healthy")
