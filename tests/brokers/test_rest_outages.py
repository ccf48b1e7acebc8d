"""REST while the cluster of Connect's topics does not run, or does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from sparkmirror.connect.herder.herder import ConnectorOffset
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, named_config, poll_until
from tests.support.connect.kafka_herder import running_kafka_herder, worker_config
from tests.support.kafka.clusters import SharedCluster, StartCluster, UniqueName
from tests.support.rest.rest_client import (
    RestClient,
    RestResponse,
    request_once,
    running_rest_server,
)

NAME = "outage"
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


@pytest.mark.parametrize("kind", OUTAGES)
def test_changes_fail_in_time_with_the_cause_and_reads_are_answered_meanwhile(
    cluster: Cluster, unique_name: UniqueName, kind: str
) -> None:
    outage = OUTAGES[kind]
    shared = SharedCluster(name=NAME, properties=cluster.client_properties())
    config = worker_config(shared, unique_name("worker"))
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
        outage.begin(cluster)
        try:
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
            assert reads["/connectors/stopped/offsets"].json["offsets"][0]["offset"] == {
                "offset": 3
            }
            assert health.json["status"] in {"healthy", "degraded", "unhealthy"}
            poll_until(lambda: is_unhealthy(server.address, outage.cause), "the cause in /health")
        finally:
            outage.end(cluster)
        poll_until(lambda: is_healthy(server.address), "health after the outage", 120)
        resumed = request_once(server.address, "PUT", "/connectors/stopped/resume")
        assert resumed.status == 202
        harness.wait_for_states("stopped", *RUNNING)


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
