"""Refreshes what a connector knows of its clusters, in a thread of its own.

    connector.start ──▶ ClusterWatcher.start ──▶ thread: refresh, refresh if due, ...
    connector.stop  ──▶ ClusterWatcher.stop  ──▶ thread ends, clients are closed

`start` waits for the first refresh, so that a started connector can plan its tasks. If a cluster
is down, the thread keeps trying, and `last_error` says why there is no plan yet. An error of the
first refresh that is not retriable (a wrong password, for example) fails the start.

A refresh runs every few seconds: MirrorMaker 2's refresh intervals are upper bounds here. If a
refresh takes long, it runs less often, so that it loads the clusters little.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from sparkmirror.connect.connector import ConnectorContext
from sparkmirror.connect.connectors.shared.mirror_connector_config import MirrorConnectorConfig
from sparkmirror.connect.connectors.shared.scheduler import Scheduler
from sparkmirror.errors import ClusterError, ClusterTimeout

REFRESH_CHECK_S = 5.0
IDLE_TO_BUSY_RATIO = 50
"""Refreshing takes at most one part in so many of the time."""
FIRST_REFRESH_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0
_CANCEL_CHECK_S = 0.1


class ClosableClient(Protocol):
    """A client that the watcher closes when its thread has ended."""

    def close(self) -> None: ...


class ClusterWatcher:
    """Calls `refresh` until it has succeeded once, and then at intervals until `stop`."""

    def __init__(
        self,
        connector_class: str,
        shared: MirrorConnectorConfig,
        *,
        description: str,
        refresh: Callable[[], float],
        clients: Iterable[ClosableClient],
    ) -> None:
        """`connector_class` names the thread, `description` the refresh in log lines.

        `refresh` returns how many seconds its queries took. Only the watcher's thread uses
        `clients`; `stop` closes them.
        """
        self._refresh = refresh
        self._description = description
        self._clients = tuple(clients)
        self._interval_s: float | None = None
        self._has_refreshed = threading.Event()
        self._failure: ClusterError | None = None
        self._last_error = _no_answer_yet(shared)
        self._next_refresh_at = 0.0
        self._scheduler = Scheduler(
            f"Scheduler for {connector_class}: {shared.flow}|{shared.name}", connector=shared.name
        )

    @property
    def has_refreshed(self) -> bool:
        """Whether a refresh has succeeded."""
        return self._has_refreshed.is_set() and self._failure is None

    @property
    def last_error(self) -> ClusterError:
        """Why no refresh has succeeded yet, as an error to raise."""
        return self._last_error.with_traceback(None)

    def refresh_every(self, interval_s: float | None) -> None:
        """Set the longest pause between refreshes; None means that one refresh is enough."""
        self._interval_s = interval_s

    def run_every(
        self, interval_s: float | None, description: str, run: Callable[[], None]
    ) -> None:
        """Add another job of the same thread: it runs at once and then at intervals."""
        self._scheduler.schedule_repeating(interval_s, description, run)

    def start(self, context: ConnectorContext) -> None:
        """Start the thread and wait for the first refresh, for a limited time.

        Raises the error of the first refresh if it is not retriable.
        """
        every_s = REFRESH_CHECK_S if self._interval_s is None else self._interval_s
        self._scheduler.schedule_repeating(
            min(every_s, REFRESH_CHECK_S), self._description, self._refresh_if_due, first=True
        )
        self._scheduler.start()
        deadline = time.monotonic() + FIRST_REFRESH_TIMEOUT_S
        while not self._has_refreshed.wait(_CANCEL_CHECK_S):
            if context.is_cancelled() or time.monotonic() > deadline:
                return
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop the thread and close the clients.

        A refresh that does not end in time keeps its clients: it may still use them.
        """
        if self._scheduler.stop(STOP_TIMEOUT_S):
            for client in self._clients:
                client.close()

    def _refresh_if_due(self) -> None:
        began = time.monotonic()
        is_first = not self._has_refreshed.is_set()
        if not is_first and (self._interval_s is None or began < self._next_refresh_at):
            return
        try:
            took_s = self._refresh()
        except ClusterError as error:
            self._last_error = error
            if is_first and not error.retriable:
                self._failure = error
                self._has_refreshed.set()
            raise
        self._has_refreshed.set()
        idle_s = min(IDLE_TO_BUSY_RATIO * took_s, self._interval_s or 0.0)
        self._next_refresh_at = time.monotonic() + idle_s - REFRESH_CHECK_S


def _no_answer_yet(shared: MirrorConnectorConfig) -> ClusterError:
    """Return the error that holds before any cluster has answered or refused."""
    sides = {"source": shared.flow.source, "target": shared.flow.target}
    names = [
        f"{alias} ({shared.originals.get(f'{side}.cluster.bootstrap.servers', 'no address')})"
        for side, alias in sides.items()
    ]
    return ClusterTimeout(str(shared.flow), f"waiting for first answers of {' and '.join(names)}")
