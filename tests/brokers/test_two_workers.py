"""Two workers of one group on real brokers: either one answers any request."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.security.tls.ssl_context import client_context
from tests.support.connect.rest_worker import RestWorker, running_rest_worker
from tests.support.golden import golden_lines
from tests.support.kafka.clusters import SharedCluster, UniqueName
from tests.support.rest.rest_client import JSON_HEADERS, RestClient, RestResponse
from tests.support.waiting import wait_until

RECORDED_LEADER, RECORDED_FOLLOWER = "127.0.0.1:31083", "127.0.0.1:31183"
RECORDED_BROKER = re.compile(r"127\.0\.0\.1:31[01]92")
RUNNING = ("RUNNING", "RUNNING")
STATES_BEFORE = {
    "expand-status": {"h1": RUNNING, "h2": RUNNING},
    "patch-on-follower": {"h5": RUNNING},
    "restart": {"h1": RUNNING, "h2": RUNNING},
    "restart-task": {"h1": RUNNING, "h2": RUNNING},
    "restart-forward-false": {"h1": RUNNING, "h2": RUNNING},
    "restart-with-tasks-on-follower": {"h1": RUNNING},
    "pause-on-follower": {"h1": RUNNING},
    "status-on-follower": {"h1": ("PAUSED", "PAUSED")},
}
"""What a worker must show before an exchange, because the recording shows its consequence."""
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
LOGIN_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
ADA = {"Authorization": "Basic " + base64.b64encode(b"ada:lovelace").decode()}
NEW_KEY = "Distributing new session key"
MASKED = ("worker_id", "kafka_cluster_id", "commit")


@pytest.fixture
def group(
    backup: SharedCluster, unique_name: UniqueName, tmp_path: Path
) -> Iterator[tuple[RestWorker, RestWorker]]:
    """Two workers; the first one leads."""
    name = unique_name("group")
    with (
        running_rest_worker(backup, name, tmp_path / "first") as first,
        running_rest_worker(backup, name, tmp_path / "second") as second,
    ):
        wait_for_members(first, second)
        yield first, second


def wait_for_members(*workers: RestWorker) -> None:
    def all_know_each_other() -> bool:
        found = [worker.worker.herder.assignment() for worker in workers]
        return all(one is not None and len(one.shares) == len(workers) for one in found)

    wait_until(all_know_each_other, "all workers to be in one group")


def request(
    worker: RestWorker,
    method: str,
    path: str,
    body: str | None = None,
    headers: dict[str, str] | None = None,
) -> RestResponse:
    client = RestClient(worker.url, timeout_s=100)
    try:
        return client.request(method, path, body, headers)
    finally:
        client.close()


def status_of(worker: RestWorker, connector: str) -> Any:
    return request(worker, "GET", f"/connectors/{connector}/status").json


def states_of(worker: RestWorker, connector: str) -> tuple[str, ...]:
    found = status_of(worker, connector)
    if "error_code" in found:
        return ()
    return (found["connector"]["state"], *(task["state"] for task in found["tasks"]))


def has_states(worker: RestWorker, connector: str, states: tuple[str, ...]) -> bool:
    return states_of(worker, connector) == states


def masked(value: Any) -> Any:
    """The value without what differs from run to run."""
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items() if key not in MASKED}
    return [masked(item) for item in value] if isinstance(value, list) else value


def test_the_recorded_exchanges_of_two_java_workers(
    group: tuple[RestWorker, RestWorker], backup: SharedCluster
) -> None:
    leader, follower = group
    assert leader.worker.herder.is_leader()
    brokers = backup.bootstrap
    for line in golden_lines("rest/10-two-workers.jsonl"):
        asked = leader if RECORDED_LEADER in line["note"] else follower
        for connector, states in STATES_BEFORE.get(line["name"], {}).items():
            for worker in group:
                wait_until(
                    partial(has_states, worker, connector, states),
                    f"{line['name']}: {connector} to be {states}",
                )
        if line["name"] == "list-end":  # the recording deletes it between two exchanges
            assert request(leader, "DELETE", "/connectors/h2").status == 204
            wait_until(lambda: "h2" not in request(follower, "GET", "/connectors").json, "h2 to go")
        body = line["request_body"] and RECORDED_BROKER.sub(brokers, line["request_body"])
        answer = request(asked, line["method"], line["path"], body, line["request_headers"])
        check_answer(asked, line, answer, brokers)


def check_answer(
    asked: RestWorker, line: dict[str, Any], answer: RestResponse, brokers: str
) -> None:
    expected, status = RECORDED_BROKER.sub(brokers, line["body"]), line["status"]
    if line["name"] == "restart-forward-false":
        connector = line["path"].split("/")[2]
        is_owner = status_of(asked, connector)["connector"]["worker_id"] == asked.worker_id
        status = 204 if is_owner else 409
        expected = expected if status == line["status"] else ""
    where = f"{line['seq']} {line['name']}: {answer.content.decode()}"
    assert answer.status == status, where
    if expected:
        assert masked(answer.json) == masked(json.loads(expected)), where
    location = dict(line["response_headers"]).get("Location")
    if location is not None:
        path = location.partition("/connectors")[2]
        assert answer.headers["location"] == f"{asked.url}/connectors{path}", where
    if line["name"] == "expand-status":
        workers = {found["status"]["connector"]["worker_id"] for found in answer.json.values()}
        assert len(workers) == 2, "each worker runs one of the two connectors"


def heartbeat_config(cluster: SharedCluster) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        "source.cluster.alias": "source",
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": cluster.bootstrap,
        "target.cluster.bootstrap.servers": cluster.bootstrap,
        "heartbeats.topic.replication.factor": "1",
        "emit.heartbeats.interval.seconds": "1",
        "tasks.max": "1",
    }


def secured_keys(authority: CertificateAuthority) -> dict[str, str]:
    """https with certificates of clients, passwords, and another signature than the default."""
    return {
        "rest.extension.classes": EXTENSION,
        "listeners.https.ssl.keystore.location": str(authority.issue("worker")),
        "listeners.https.ssl.truststore.location": str(authority.ca_certificate),
        "listeners.https.ssl.client.auth": "required",
        "inter.worker.signature.algorithm": "HmacSHA512",
        "inter.worker.verification.algorithms": "HmacSHA256,HmacSHA512",
        "inter.worker.key.ttl.ms": "3000",
    }


def test_workers_with_https_and_passwords_forward_sign_and_read_each_other(
    backup: SharedCluster,
    unique_name: UniqueName,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    authority = CertificateAuthority.create(tmp_path / "certificates")
    (tmp_path / "users").write_text("ada=lovelace\n")
    (tmp_path / "jaas").write_text(
        f'KafkaConnect {{ {LOGIN_MODULE} required file="{tmp_path / "users"}"; }};'
    )
    environment = {"KAFKA_OPTS": f"-Djava.security.auth.login.config={tmp_path / 'jaas'}"}
    keys, name = secured_keys(authority), unique_name("group")
    client_tls = client_context(
        {
            "ssl.truststore.location": str(authority.ca_certificate),
            "ssl.keystore.location": str(authority.issue("client")),
        }
    )
    with (
        running_rest_worker(backup, name, tmp_path / "1", keys, environment, "https") as leader,
        running_rest_worker(backup, name, tmp_path / "2", keys, environment, "https") as follower,
    ):
        wait_for_members(leader, follower)

        def ask(
            worker: RestWorker, method: str, path: str, body: Any = None, headers: Any = ADA
        ) -> RestResponse:
            client = RestClient(worker.url, client_tls, timeout_s=100)
            sent = {"Content-Type": "application/json", **headers}
            try:
                return client.request(method, path, json.dumps(body) if body else None, sent)
            finally:
                client.close()

        def runs(connector: str) -> bool:
            found = ask(follower, "GET", f"/connectors/{connector}/status").json
            parts = [found.get("connector", {}), *found.get("tasks", [])]
            return [part.get("state") for part in parts] == ["RUNNING", "RUNNING"]

        config = heartbeat_config(backup)
        assert ask(follower, "PUT", "/connectors/h1/config", config, {}).status == 401
        for connector in ("h1", "h2"):
            answer = ask(follower, "PUT", f"/connectors/{connector}/config", config)
            assert (answer.status, answer.json["name"]) == (201, connector)
            assert answer.headers["location"] == f"{follower.url}/connectors/{connector}"
        for connector in ("h1", "h2"):  # the follower gives the leader the tasks of its connector
            wait_until(partial(runs, connector), f"{connector} to run")
        written = caplog.text.count(NEW_KEY)
        wait_until(lambda: caplog.text.count(NEW_KEY) > written, "another session key")
        assert ask(follower, "PUT", "/connectors/h3/config", config).status == 201
        assert ask(leader, "PUT", "/connectors/h4/config", config).status == 201
        for connector in ("h3", "h4"):
            wait_until(partial(runs, connector), f"{connector} to run")
        for worker in (leader, follower):
            found = ask(worker, "GET", "/connectors/h1/partitions").json
            assert (found["partitions"], found.get("unreachable_workers")) == ([], None)


def test_a_change_that_is_asked_while_the_leader_leaves_is_made_by_the_next_leader(
    group: tuple[RestWorker, RestWorker], backup: SharedCluster
) -> None:
    leader, follower = group
    config = json.dumps(heartbeat_config(backup))
    leader.worker.rest.stop(0.0)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(request, follower, "PUT", "/connectors/h/config", config, JSON_HEADERS)
        leader.worker.herder.shut_down()
        answer = asked.result()
    assert (answer.status, answer.json["name"]) == (201, "h")
    assert follower.worker.herder.is_leader()
