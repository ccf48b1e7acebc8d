"""The three connectors with clusters that do not answer: what they report, and how they stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from sparkmirror.connect.connector import Connector, ConnectorContext
from sparkmirror.connect.connectors.checkpoint.checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.connectors.heartbeat.heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.connect.connectors.shared import cluster_watcher
from sparkmirror.connect.connectors.source.source_connector import MirrorSourceConnector
from sparkmirror.errors import TasksNotPlanned
from tests.support.connect.connector_context import RecordingContext
from tests.support.reserved_port import reserved_port
from tests.support.timing import fastest_run_s
from tests.support.waiting import wait_until

CONNECTORS: dict[str, Callable[[str, ConnectorContext], Connector]] = {
    "Source": MirrorSourceConnector,
    "Checkpoint": MirrorCheckpointConnector,
    "Heartbeat": MirrorHeartbeatConnector,
}


@pytest.fixture(autouse=True)
def short_first_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first check of each cluster fail soon: what it reports is the same."""
    monkeypatch.setattr(cluster_watcher, "FIRST_CHECK_TIMEOUT_S", 0.2)


@pytest.fixture
def dead() -> Iterator[str]:
    """An address where nothing listens."""
    with reserved_port() as port:
        yield f"127.0.0.1:{port}"


@contextmanager
def started(kind: str, source: str, target: str) -> Iterator[tuple[Connector, RecordingContext]]:
    context = RecordingContext()
    connector = CONNECTORS[kind]("c", context)
    connector.start(
        {
            "name": "c",
            "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
            "source.cluster.alias": "primary",
            "target.cluster.alias": "backup",
            "source.cluster.bootstrap.servers": source,
            "target.cluster.bootstrap.servers": target,
        }
    )
    try:
        yield connector, context
    finally:
        connector.stop()


@pytest.mark.parametrize("kind", ["Source", "Checkpoint"])
def test_both_clusters_are_named_with_address_cause_and_advice(kind: str, dead: str) -> None:
    cause = f"PLAINTEXT {dead}: connection refused; check whether the broker runs"
    with started(kind, dead, dead) as (connector, context):
        wait_until(
            lambda: context.problem == f"backup: {cause}; primary: {cause}", "both in the problem"
        )
        with pytest.raises(TasksNotPlanned, match=r"backup: .*; primary: "):
            connector.task_configs(1)


def test_a_heartbeat_connector_needs_only_its_target(dead: str) -> None:
    with started("Heartbeat", dead, dead) as (connector, context):
        wait_until(lambda: "backup: PLAINTEXT" in context.problem, "the problem")
        assert "primary" not in context.problem
        assert len(connector.task_configs(1)) == 1


def test_an_http_port_is_not_taken_for_a_broker(dead: str) -> None:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        http = f"127.0.0.1:{server.server_port}"
        with started("Source", http, dead) as (_, context):
            wait_until(lambda: f"primary: PLAINTEXT {http}" in context.problem, "the problem")
            assert "check that this is the right port" in context.problem
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", CONNECTORS)
def test_a_connector_that_waits_for_a_cluster_stops_at_once(kind: str, dead: str) -> None:
    def stop() -> None:
        runs.pop().__exit__(None, None, None)

    runs = [started(kind, dead, dead) for _ in range(3)]
    for run in runs:
        run.__enter__()
    assert fastest_run_s(stop) < 2.5
