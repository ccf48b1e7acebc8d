"""What a connector reports before its first refresh, and when its clients are closed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sparkmirror.connect.connectors.shared import cluster_watcher
from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ClusterUnavailable
from tests.support.connect.connector_context import RecordingContext
from tests.support.waiting import wait_until

CONFIG = {
    "name": "c",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "one:9092",
    "target.cluster.bootstrap.servers": "two:9092",
}


class ClosableRecorder:
    """A client that records whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def started_watcher(refresh: Callable[[], float], client: ClosableRecorder) -> ClusterWatcher:
    """A running watcher of a source connector, with one client that it closes at its end."""
    watcher = ClusterWatcher(
        "MirrorSourceConnector",
        MirrorSourceConfig.parse(CONFIG).shared,
        description="refreshing topics",
        refresh=refresh,
        clients=[client],
    )
    watcher.start(RecordingContext(cancelled=True))
    return watcher


def test_before_the_first_refresh_the_error_names_the_clusters_that_did_not_answer() -> None:
    may_refresh = threading.Event()

    def refresh() -> float:
        may_refresh.wait()
        raise ClusterUnavailable("B", "connection refused")

    client = ClosableRecorder()
    watcher = started_watcher(refresh, client)
    no_answer = "A->B: waiting for first answers of A (one:9092) and B (two:9092)"
    assert str(watcher.last_error) == no_answer
    may_refresh.set()
    wait_until(
        lambda: str(watcher.last_error) == "B: connection refused", "the first refresh to fail"
    )
    assert not watcher.has_refreshed
    assert not client.is_closed
    watcher.stop()
    assert client.is_closed


def test_clients_of_a_refresh_that_does_not_end_stay_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_watcher, "STOP_TIMEOUT_S", 0.01)
    may_end, is_running = threading.Event(), threading.Event()

    def refresh() -> float:
        is_running.set()
        may_end.wait(50)
        return 0.0

    client = ClosableRecorder()
    watcher = started_watcher(refresh, client)
    assert is_running.wait(50)
    watcher.stop()
    assert not client.is_closed
    may_end.set()
