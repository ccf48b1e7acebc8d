"""Starts and stops one herder.

open the stores ──▶ join the group ──▶ as leader claim the write privileges ──▶ start the own share
stop connectors ──▶ leave the group ──▶ close the stores
"""

from __future__ import annotations

import logging
import threading
import time

from sparkmirror.connect.distributed.worker_group_member import WorkerGroupMember
from sparkmirror.connect.herder.rebalance_listener import HerderRebalanceListener
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.runtime.threads.herder_thread import CHECK_S, HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connectors import WorkerConnectors
from sparkmirror.errors import RequestFailed
from sparkmirror.store.backing_stores import BackingStores
from sparkmirror.store.store_api import ConfigListener

log = logging.getLogger(__name__)

THREAD_STOP_TIMEOUT_S = 5.0
"""How long the herder thread may take to end after connectors and tasks have stopped."""


class HerderLifecycle:
    """Starts and stops the parts of a herder. The herder owns them."""

    def __init__(
        self,
        settings: WorkerSettings,
        stores: BackingStores,
        *,
        herder_thread: HerderThread,
        tick_stage: TickThreadStage,
        member: WorkerGroupMember,
        rebalance_listener: HerderRebalanceListener,
        connectors: WorkerConnectors,
        on_config_change: ConfigListener,
    ) -> None:
        self._settings = settings
        self._stores = stores
        self._herder_thread = herder_thread
        self._tick_stage = tick_stage
        self._member = member
        self._rebalance_listener = rebalance_listener
        self._connectors = connectors
        self._on_config_change = on_config_change
        self._has_started = threading.Event()
        self._is_stopped = threading.Event()
        self._stop_requested = threading.Event()
        self._start_requested_at = float("inf")
        self._ready_at = float("-inf")
        self._failure: Exception | None = None

    @property
    def has_started(self) -> bool:
        """Whether the start has ended, successfully or not."""
        return self._has_started.is_set()

    @property
    def ready_at(self) -> float:
        """When the start has ended, by the monotonic clock; minus infinity before."""
        return self._ready_at

    @property
    def seconds_since_start(self) -> float:
        """How long ago the start began; 0.0 before."""
        return max(time.monotonic() - self._start_requested_at, 0.0)

    @property
    def has_failed(self) -> bool:
        """Whether the start has failed."""
        return self._failure is not None

    def start(self) -> None:
        """Start; does not block."""
        self._start_requested_at = time.monotonic()
        self._herder_thread.submit(self._run_start)
        self._herder_thread.start()

    def await_started(self, timeout_s: float) -> bool:
        """Wait for the end of the start; return whether the herder runs. Raises its error."""
        has_started = self._has_started.wait(timeout_s)
        if self._failure is not None:
            raise self._failure
        return has_started and not self._stop_requested.is_set()

    def await_stores(self, timeout_s: float) -> bool:
        """Wait until the start has ended; return whether it has.

        Returns False at once if the worker has a problem: the start then lasts until it is solved.
        Raises RequestFailed if the start has failed.
        """
        deadline = time.monotonic() + timeout_s
        while not self._has_started.wait(max(min(CHECK_S, deadline - time.monotonic()), 0.0)):
            if self.problem() or time.monotonic() >= deadline:
                return False
        self.raise_if_failed()
        return True

    def raise_if_failed(self) -> None:
        """Raise RequestFailed if the start has failed."""
        if self._failure is not None:
            raise RequestFailed(f"The worker could not start: {self._failure}")

    def problem(self) -> str:
        """Return why the worker cannot read or write its topics or may not run; empty if it can."""
        return self._stores.problem() or self._rebalance_listener.problem()

    def await_stopped(self, timeout_s: float | None = None) -> Exception | None:
        """Wait until the herder has stopped, or its start has failed; return that failure."""
        self._is_stopped.wait(timeout_s)
        return self._failure

    def shut_down(self) -> None:
        """Stop connectors and tasks, write their statuses, close the stores. Blocks."""
        self._log("Herder stopping")
        self._stop_requested.set()
        is_start_requested = self._start_requested_at < float("inf")
        if is_start_requested and not self._has_started.is_set():
            self._member.leave()
            self._close_stores()  # the start may be blocked in a store
            self._has_started.wait(THREAD_STOP_TIMEOUT_S)
        if self._has_started.is_set():
            self._stop_connectors()
        self._herder_thread.close(THREAD_STOP_TIMEOUT_S)
        self._member.leave()
        self._close_stores()
        self._is_stopped.set()
        self._log("Herder stopped")

    def _stop_connectors(self) -> None:
        self._log("Stopping connectors and tasks that are still assigned to this worker.")
        timeout_s = 2 * self._settings.stop_timeout_s
        try:
            threads = self._herder_thread.call(self._connectors.stop_all, timeout_s)
        except RequestFailed as error:
            log.warning("Connectors and tasks keep running: the herder thread hangs: %s", error)
            return
        deadline = time.monotonic() + timeout_s
        for thread in threads:
            if not thread.join(deadline - time.monotonic()):
                log.warning("Connector %s did not stop within %.0f s", thread.name, timeout_s)

    # -- the herder thread -----------------------------------------------------------------------

    def _run_start(self) -> None:
        try:
            self._log("Herder starting")
            self._open_stores()
            with self._tick_stage.enter("joining the group of workers"):
                self._rebalance_listener.join(self._stop_requested, self._on_membership_lost)
            self._rebalance_listener.claim_as_leader(self._stop_requested)
            if not self._stop_requested.is_set():
                self._start_connectors()
        except Exception as error:
            if self._stop_requested.is_set():
                log.info("The start of the herder was interrupted by its shutdown: %s", error)
            else:
                prefix = self._settings.log_prefix
                log.exception("%sUncaught exception in herder work thread, exiting: ", prefix)
                self._failure = error
                self._is_stopped.set()
        self._ready_at = time.monotonic()
        self._has_started.set()

    def _on_membership_lost(self, error: Exception) -> None:
        self._failure = error
        self._is_stopped.set()

    def _open_stores(self) -> None:
        stores = self._stores
        with self._tick_stage.enter("reading the offsets topic"):
            stores.offsets.start()
        with self._tick_stage.enter("reading the status topic"):
            stores.statuses.start()
        with self._tick_stage.enter("reading the config topic"):
            stores.configs.start(self._on_config_change)

    def _start_connectors(self) -> None:
        offset = self._stores.configs.offset()
        self._log(f"Starting connectors and tasks using config offset {offset}")
        with self._tick_stage.enter("starting connectors and tasks"):
            self._rebalance_listener.run_first_share()
        self._log("Finished starting connectors and tasks")
        self._log("Herder started")

    def _close_stores(self) -> None:
        for store in (self._stores.statuses, self._stores.configs, self._stores.offsets):
            store.stop()

    def _log(self, line: str) -> None:
        log.info("%s%s", self._settings.log_prefix, line)
