"""Refreshes what a connector knows of its clusters, in a thread of its own.

    connector.start ──▶ ClusterWatcher.start ──▶ thread: check, refresh, check, refresh if due, ...
    connector.stop  ──▶ ClusterWatcher.stop  ──▶ running call is cancelled, thread closes clients

Every refresh begins with a check: each cluster must answer within a second or two; the limit
doubles after a failure. So the connector's problem names every cluster that does not answer, and
why, long before `admin.timeout.ms` has passed. A refresh that takes long reports why its calls are
tried again.

`start` waits for the first refresh, so that a started connector can plan its tasks, or for the
first problem. After a problem the connector runs with it, and the thread keeps trying. An error of
the first refresh that is not retriable (a wrong password, for example) fails the start. The first
refreshes of many connectors take turns (`start_turns`).

A refresh runs every few seconds: MirrorMaker 2's refresh intervals are upper bounds here. If a
refresh takes long, or if the worker has many connectors, it runs less often, so that it loads the
clusters and the worker little.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from sparkmirror.backoff import Backoff
from sparkmirror.connect.connector import ConnectorContext
from sparkmirror.connect.connectors.shared.connector_problems import ConnectorProblems
from sparkmirror.connect.connectors.shared.mirror_connector_config import MirrorConnectorConfig
from sparkmirror.connect.connectors.shared.refresh_cpu_limit import (
    IDLE_TO_BUSY_RATIO,
    WORKER_BUDGET,
    RefreshCpuLimit,
)
from sparkmirror.connect.connectors.shared.scheduler import Scheduler
from sparkmirror.connect.start_turns import WORKER_TURNS
from sparkmirror.errors import CallCancelled, ClusterError, TasksNotPlanned

REFRESH_CHECK_S = 5.0
FIRST_CHECK_TIMEOUT_S = 1.0
LATER_CHECK_TIMEOUT_S = 2.0
MAX_CHECK_TIMEOUT_S = 8.0
FIRST_ANSWER_TIMEOUT_S = 4.0
"""How long `start` waits for the first refresh or the first problem."""
SLOW_REFRESH_S = 2.0
"""After this time a refresh reports why its calls are tried again."""
WAITS_FOR_TURN = "waiting for its turn: other connectors and tasks of this worker start first"
STOP_TIMEOUT_S = 1.0
JOB_RETRY_S = 1.0
"""When a job is tried again that waits for a cluster."""
PROBLEM_RETRY_S = 30.0
"""When a job with a problem is tried again, if its interval is longer."""
_CANCEL_CHECK_S = 0.1
_REFRESH = "refresh"

log = logging.getLogger(__name__)


class WatchedClient(Protocol):
    """The client of one cluster. Only the watcher's thread uses it, except for `cancel`."""

    on_retry: Callable[[ClusterError], None]
    """Called with every error after which a call is tried again."""

    def refresh(self, *, timeout_s: float) -> object:
        """Ask the cluster for its brokers. Raises ClusterError."""

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled."""

    def close(self) -> None:
        """Close the connections."""


class ClusterWatcher:
    """Calls `refresh` until it has succeeded once, and then at intervals until `stop`."""

    def __init__(
        self,
        connector_class: str,
        shared: MirrorConnectorConfig,
        context: ConnectorContext,
        *,
        description: str,
        refresh: Callable[[], float],
        clients: Iterable[WatchedClient],
        find_problem: Callable[[], str] = lambda: "",
        budget: RefreshCpuLimit = WORKER_BUDGET,
    ) -> None:
        """`connector_class` names the thread, `description` the refresh in log lines.

        `refresh` returns how many seconds its queries took. After it, `find_problem` returns what
        is wrong all the same.
        """
        self._refresh = refresh
        self._budget = budget
        self._find_problem = find_problem
        self._description = description
        self._context = context
        self._clients = tuple(clients)
        self._problems = ConnectorProblems(context)
        self._no_answer_yet = _no_answer_yet(shared)
        self._interval_s: float | None = None
        self._has_first_result = threading.Event()
        self._is_starting = True
        self._waits_for_turn = False
        self._has_tried = False
        self._has_refreshed = False
        self._failure: ClusterError | None = None
        self._is_connected = False
        self._refresh_began: float | None = None
        self._check_timeout_s = FIRST_CHECK_TIMEOUT_S
        self._backoff = Backoff(initial_s=0.5, max_s=REFRESH_CHECK_S)
        self._scheduler = Scheduler(
            f"Scheduler for {connector_class}: {shared.flow}|{shared.name}",
            connector=shared.name,
            on_end=self._close_clients,
        )
        for client in self._clients:
            client.on_retry = self._on_retry

    @property
    def has_refreshed(self) -> bool:
        """Whether a refresh has succeeded."""
        return self._has_refreshed

    def not_planned(self) -> TasksNotPlanned:
        """Return the error of a connector that has nothing to plan with yet."""
        return TasksNotPlanned(self._problems.text or self._no_answer_yet)

    def refresh_every(self, interval_s: float | None) -> None:
        """Set the longest pause between refreshes; None means that one refresh is enough."""
        self._interval_s = interval_s

    def run_every(self, interval_s: float | None, description: str, run: Callable[[], str]) -> None:
        """Add another job of the same thread: it runs after the first refresh, then at intervals.

        It waits while a cluster does not answer. What `run` returns, or an error that is not
        retriable, is a problem of the connector until the job succeeds.
        """
        retry_s = min(PROBLEM_RETRY_S, interval_s or PROBLEM_RETRY_S)
        self._scheduler.schedule_repeating(
            interval_s, description, partial(self._run_job, description, run, retry_s)
        )

    def start(self) -> None:
        """Start the thread and wait for the first refresh or the first problem.

        Raises the error of the first refresh if it is not retriable.
        """
        self._scheduler.schedule_repeating(
            REFRESH_CHECK_S, self._description, self._refresh_in_turn, first=True
        )
        self._scheduler.start()
        deadline = time.monotonic() + FIRST_ANSWER_TIMEOUT_S
        while not self._has_first_result.wait(_CANCEL_CHECK_S):
            if self._context.is_cancelled():
                break
            if time.monotonic() > deadline:
                text = WAITS_FOR_TURN if self._waits_for_turn else self._no_answer_yet
                self._problems.update({_REFRESH: text})
                break
        self._is_starting = False
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Cancel the running call and end the thread, which closes the clients.

        Does not wait long: a thread whose call does not end in time closes them later.
        """
        for client in self._clients:
            client.cancel()
        self._scheduler.stop(STOP_TIMEOUT_S)

    # -- the thread ------------------------------------------------------------------------------

    def _refresh_in_turn(self) -> float:
        """Check the clusters and refresh; return the seconds until the next turn."""
        if self._has_refreshed and self._interval_s is None:
            return REFRESH_CHECK_S
        cpu_began_s = time.thread_time()
        try:
            took_s = self._check_and_refresh() if self._has_tried else self._refresh_first()
        except CallCancelled:
            return REFRESH_CHECK_S
        except ClusterError as error:
            self._on_error(error)
            return self._backoff.next_delay_s()
        finally:
            self._refresh_began = None
        self._backoff.reset()
        self._has_refreshed = True
        self._problems.update({_REFRESH: self._find_problem()})
        self._has_first_result.set()
        longest_s = REFRESH_CHECK_S if self._interval_s is None else self._interval_s
        pause_s = self._budget.pause_s(self, time.thread_time() - cpu_began_s)
        return min(max(IDLE_TO_BUSY_RATIO * took_s, pause_s, REFRESH_CHECK_S), longest_s)

    def _refresh_first(self) -> float:
        self._waits_for_turn = True
        with WORKER_TURNS.turn():
            self._waits_for_turn, self._has_tried = False, True
            return self._check_and_refresh()

    def _check_and_refresh(self) -> float:
        self._check_clusters()
        self._refresh_began = time.monotonic()
        return self._refresh()

    def _check_clusters(self) -> None:
        """Ask every cluster for its brokers. Raises the error of one; the problem has them all."""
        errors = [self._check_cluster(client) for client in self._clients]
        problems = {f"cluster {n}": str(error or "") for n, error in enumerate(errors)}
        failed = [error for error in errors if error is not None]
        self._is_connected = not failed
        if not failed:
            self._check_timeout_s = LATER_CHECK_TIMEOUT_S
            self._problems.update(problems)
            return
        self._check_timeout_s = min(2 * self._check_timeout_s, MAX_CHECK_TIMEOUT_S)
        # A refused login comes first: it may fail the start. What the last refresh found is old.
        first = min(failed, key=lambda error: error.retriable)
        if self._may_fail_start(first):
            raise first
        self._problems.update(problems | {_REFRESH: ""})
        raise first

    def _check_cluster(self, client: WatchedClient) -> ClusterError | None:
        try:
            client.refresh(timeout_s=self._check_timeout_s)
        except CallCancelled:
            raise
        except ClusterError as error:
            return error
        return None

    def _may_fail_start(self, error: ClusterError) -> bool:
        return self._is_starting and not error.retriable

    def _on_error(self, error: ClusterError) -> None:
        if self._may_fail_start(error):
            self._failure = error
        elif self._is_connected:
            self._problems.update({_REFRESH: str(error)})
        self._has_first_result.set()

    def _on_retry(self, error: ClusterError) -> None:
        """Report the error if the refresh already takes long; it may take a minute more."""
        began = self._refresh_began
        if began is not None and time.monotonic() - began > SLOW_REFRESH_S:
            self._problems.update({_REFRESH: str(error)})
            self._has_first_result.set()

    def _run_job(self, description: str, run: Callable[[], str], retry_s: float) -> float | None:
        """Run a job if the clusters answer; return the seconds until it is tried again."""
        if not (self._has_refreshed and self._is_connected):
            return JOB_RETRY_S
        try:
            found = run()
            problem = found and f"{description}: {found}"
        except CallCancelled:
            return None
        except ClusterError as error:
            if error.retriable:
                log.warning("%s is tried again: %s", description, error)
                return REFRESH_CHECK_S
            problem = f"{description}: {error}"
        self._problems.update({description: problem})
        return retry_s if problem else None

    def _close_clients(self) -> None:
        self._budget.remove(self)
        for client in self._clients:
            client.close()


def _no_answer_yet(shared: MirrorConnectorConfig) -> str:
    """Return the problem that holds before any cluster has answered or refused."""
    sides = {"source": shared.flow.source, "target": shared.flow.target}
    names = [
        f"{alias} ({shared.originals.get(f'{side}.cluster.bootstrap.servers', 'no address')})"
        for side, alias in sides.items()
    ]
    return f"{shared.flow}: waiting for first answers of {' and '.join(names)}"
