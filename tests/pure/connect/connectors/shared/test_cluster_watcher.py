"""What a connector reports of its clusters, and when its clients are closed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sparkmirror.connect.connectors.shared import cluster_watcher
from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import CallCancelled, ClusterError, ClusterUnavailable, NotAuthorized
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
A_REFUSED = ClusterUnavailable("A", "one:9092: connection refused; check whether the broker runs")
B_UNKNOWN = ClusterUnavailable("B", "two:9092: the host name cannot be resolved; check it")


class FakeClient:
    """A client of a cluster that the test takes down. `blocks` makes it wait until cancelled."""

    def __init__(self, error: ClusterError | None = None, *, blocks: bool = False) -> None:
        self.error = error
        self.timeouts_s: list[float] = []
        self.is_closed = False
        self.on_retry: Callable[[ClusterError], None] = lambda error: None
        self._blocks = blocks
        self._cancelled = threading.Event()

    def refresh(self, *, timeout_s: float) -> object:
        self.timeouts_s.append(timeout_s)
        if self._blocks:
            self.wait_until_cancelled()
        if self.error is not None:
            raise self.error.with_traceback(None)
        return None

    def wait_until_cancelled(self) -> None:
        """Block as a call to a dead cluster does."""
        assert self._cancelled.wait(50)
        raise CallCancelled("A")

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self.is_closed = True


class WatcherHarness:
    """A watcher of a source connector, its clients and what it reported."""

    def __init__(self, source: FakeClient, target: FakeClient) -> None:
        self.source, self.target = source, target
        self.context = RecordingContext()
        self.refreshes = 0
        self.during_refresh: Callable[[], None] = lambda: None
        self.found = ""
        self.watcher = ClusterWatcher(
            "MirrorSourceConnector",
            MirrorSourceConfig.parse(CONFIG).shared,
            self.context,
            description="refreshing topics",
            refresh=self._refresh,
            clients=[source, target],
            find_problem=lambda: self.found,
        )
        self.watcher.refresh_every(0.0)

    def _refresh(self) -> float:
        self.refreshes += 1
        self.during_refresh()
        return 0.0

    def wait_for_problem(self, problem: str) -> None:
        wait_until(lambda: self.context.problem == problem, f"the problem {problem!r}")


@contextmanager
def watching(source: FakeClient, target: FakeClient) -> Iterator[WatcherHarness]:
    harness = WatcherHarness(source, target)
    try:
        yield harness
    finally:
        harness.watcher.stop()


def test_the_problem_names_every_cluster_that_does_not_answer_and_why() -> None:
    with watching(FakeClient(A_REFUSED), FakeClient(B_UNKNOWN)) as harness:
        harness.watcher.start()
        assert harness.context.problems == [f"{A_REFUSED}; {B_UNKNOWN}"]
        assert str(harness.watcher.not_planned()) == f"{A_REFUSED}; {B_UNKNOWN}"
        assert harness.refreshes == 0
        harness.target.error = None
        harness.wait_for_problem(str(A_REFUSED))
        harness.source.error = None
        harness.wait_for_problem("")
        wait_until(lambda: harness.refreshes > 2, "more refreshes")
        assert harness.watcher.has_refreshed
        harness.source.error = A_REFUSED
        harness.wait_for_problem(str(A_REFUSED))
        assert harness.source.timeouts_s[:3] == [1.0, 2.0, 4.0]
        assert max(harness.source.timeouts_s) <= cluster_watcher.MAX_CHECK_TIMEOUT_S


def test_a_cluster_that_refuses_the_user_fails_the_start_but_not_a_running_connector() -> None:
    refused = NotAuthorized("B", "wrong password")
    with watching(FakeClient(A_REFUSED), FakeClient(refused)) as harness:
        with pytest.raises(NotAuthorized, match="wrong password"):
            harness.watcher.start()
        assert harness.context.problems == []
    with watching(FakeClient(), FakeClient()) as harness:
        harness.watcher.start()
        harness.target.error = refused
        harness.wait_for_problem("B: wrong password")
        harness.target.error = None
        harness.wait_for_problem("")


def test_an_error_of_the_refresh_itself_is_a_problem_until_the_next_success() -> None:
    def fail() -> None:
        raise ClusterUnavailable("B", "no controller")

    with watching(FakeClient(), FakeClient()) as harness:
        harness.during_refresh = fail
        harness.watcher.start()
        assert harness.context.problem == "B: no controller"
        harness.during_refresh = lambda: None
        harness.found = "no topic of A matches topics=x"
        harness.wait_for_problem("no topic of A matches topics=x")
        harness.found = ""
        harness.wait_for_problem("")


def test_a_refresh_that_takes_long_reports_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_watcher, "SLOW_REFRESH_S", 0.0)
    with watching(FakeClient(), FakeClient()) as harness:

        def wait_for_a_leader() -> None:
            time.sleep(0.001)
            harness.source.on_retry(A_REFUSED)
            harness.source.wait_until_cancelled()

        harness.during_refresh = wait_for_a_leader
        harness.watcher.start()
        assert harness.context.problem == str(A_REFUSED)


def test_a_cluster_that_neither_answers_nor_refuses_is_named_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_watcher, "FIRST_ANSWER_TIMEOUT_S", 0.01)
    with watching(FakeClient(blocks=True), FakeClient()) as harness:
        harness.watcher.start()
        no_answer = "A->B: waiting for first answers of A (one:9092) and B (two:9092)"
        assert harness.context.problem == no_answer


def test_a_stop_ends_a_call_that_waits_for_a_cluster_and_closes_the_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_watcher, "FIRST_ANSWER_TIMEOUT_S", 0.01)
    harness = WatcherHarness(FakeClient(), FakeClient(blocks=True))
    harness.watcher.start()
    wait_until(lambda: bool(harness.target.timeouts_s), "the call that waits")
    harness.watcher.stop()
    wait_until(lambda: harness.source.is_closed and harness.target.is_closed, "closed clients")
    assert not [problem for problem in harness.context.problems if "cancelled" in problem]


def test_clients_of_a_refresh_that_does_not_end_are_closed_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_watcher, "STOP_TIMEOUT_S", 0.01)
    monkeypatch.setattr(cluster_watcher, "FIRST_ANSWER_TIMEOUT_S", 0.01)
    may_end = threading.Event()
    harness = WatcherHarness(FakeClient(), FakeClient())
    harness.during_refresh = lambda: assert_set(may_end)
    harness.watcher.start()
    wait_until(lambda: harness.refreshes == 1, "the refresh")
    harness.watcher.stop()
    assert not harness.source.is_closed
    may_end.set()
    wait_until(lambda: harness.source.is_closed and harness.target.is_closed, "closed clients")


def test_another_job_waits_for_the_clusters_and_what_it_could_not_do_is_a_problem() -> None:
    errors: list[ClusterError] = [NotAuthorized("A", "grant Describe on the cluster")]
    found = ["ACLs cannot be created: orders"]
    runs: list[bool] = []
    with watching(FakeClient(A_REFUSED), FakeClient()) as harness:

        def sync_acls() -> str:
            runs.append(harness.watcher.has_refreshed)
            if errors:
                raise errors[0]
            return found[0] if found else ""

        harness.watcher.run_every(0.01, "syncing topic ACLs", sync_acls)
        harness.watcher.start()
        harness.source.error = None
        harness.wait_for_problem("syncing topic ACLs: A: grant Describe on the cluster")
        errors.clear()
        harness.wait_for_problem("syncing topic ACLs: ACLs cannot be created: orders")
        found.clear()
        harness.wait_for_problem("")
        assert all(runs)


def assert_set(event: threading.Event) -> None:
    assert event.wait(50)
