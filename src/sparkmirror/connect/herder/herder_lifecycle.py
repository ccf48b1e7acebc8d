"""The life of one worker: how it starts, heeds changes of the config topic, and ends.

    stores read ──▶ connectors settled ──▶ changes heeded ... ──▶ all stopped, stores closed

Builds what a herder is made of and holds its thread. What can be asked is the herder's matter.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from sparkmirror.config.secrets.variables import ConfigProvider
from sparkmirror.connect.herder.config_requests import ConfigRequests
from sparkmirror.connect.herder.connector_queries import ConnectorQueries
from sparkmirror.connect.herder.herder import ServerInfo
from sparkmirror.connect.herder.log_levels import LogLevels
from sparkmirror.connect.herder.offset_requests import OffsetRequests
from sparkmirror.connect.herder.restart_plan import plan_restart
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.runtime.config_transformer import ConfigTransformer
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry
from sparkmirror.connect.runtime.connector_slot import RunContext
from sparkmirror.connect.runtime.group_membership import GroupMembership
from sparkmirror.connect.runtime.herder_thread import HerderThread
from sparkmirror.connect.runtime.status_writer import StatusWriter
from sparkmirror.connect.runtime.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connectors import WorkerConnectors
from sparkmirror.connect.runtime.zombie_fencing import ProducerFencer, ZombieFencing
from sparkmirror.errors import NotFound, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import (
    ClusterLoggerLevel,
    ConfigRecord,
    ConnectorConfig,
    ConnectorTargetState,
    RestartRequest,
    TasksCommit,
)
from sparkmirror.store.backing_stores import BackingStores

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

THREAD_STOP_TIMEOUT_S = 5.0
"""How long the herder's own thread may take to end, once connectors and tasks have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderDependencies:
    """What a herder is given beside its settings and stores."""

    registry: ConnectorRegistry
    get_server_info: Callable[[], ServerInfo]
    """Version, and the cluster that keeps the stores, as far as it is known yet."""
    providers: Mapping[str, ConfigProvider] = field(default_factory=dict)
    fencer: ProducerFencer | None = None
    """Needed with exactly-once support."""
    log_levels: LogLevels = field(default_factory=LogLevels)
    """One for the whole process, however many herders it holds."""


class HerderLifecycle:
    """One worker, from its start to its end, and the parts that a herder asks."""

    def __init__(
        self, settings: WorkerSettings, stores: BackingStores, surroundings: HerderDependencies
    ) -> None:
        self.settings = settings
        self.tick_stage = TickThreadStage()
        self.queries = ConnectorQueries(
            stores.configs, stores.statuses, tracks_topics=settings.tracks_topics
        )
        self.config_requests = ConfigRequests(stores.configs, self.tick_stage)
        self._stores = stores
        self._log_levels = surroundings.log_levels
        self._herder_thread = HerderThread(
            f"DistributedHerder-{settings.worker_id}", self.tick_stage
        )
        self._membership = GroupMembership(settings.worker_id)
        self.statuses = StatusWriter(stores.statuses, self._membership)
        fence = None
        if settings.terms.exactly_once:
            assert surroundings.fencer is not None, "exactly-once support needs a fence"
            fence = ZombieFencing(stores.configs, surroundings.fencer, settings.group_id)
        means = RunContext(
            registry=surroundings.registry,
            transformer=ConfigTransformer(surroundings.providers),
            herder_thread=self._herder_thread,
            stop_timeout_s=settings.stop_timeout_s,
            fence_zombies=fence,
        )
        self.offset_requests = OffsetRequests(stores.configs, stores.offsets, means)
        self.connectors = WorkerConnectors(
            means, stores.configs, self.statuses, self._membership, self.tick_stage,
            tracks_topics=settings.tracks_topics,
        )  # fmt: skip
        self._has_started = threading.Event()
        self._is_stopped = threading.Event()
        self._is_start_requested = False
        self._is_stopping = False
        self._failure: Exception | None = None

    # -- beginning and end -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin; returns at once. Whoever asks something waits until the start is over."""
        self._is_start_requested = True
        self._herder_thread.submit(self._run_start)
        self._herder_thread.start()

    def await_started(self, within_s: float) -> bool:
        """Wait for the end of the start; say whether it came. Raises what made it fail."""
        started = self._has_started.wait(within_s)
        if self._failure is not None:
            raise self._failure
        return started

    def await_stopped(self, within_s: float | None = None) -> Exception | None:
        """Wait until it has ended, or died: then return why."""
        self._is_stopped.wait(within_s)
        return self._failure

    def shut_down(self) -> None:
        """End connectors and tasks, write that down, close the stores."""
        self._log("Herder stopping")
        self._is_stopping = True
        if self._is_start_requested and not self._has_started.is_set():
            self._close_stores()  # what the start may wait in
            self._has_started.wait(THREAD_STOP_TIMEOUT_S)
        if self._has_started.is_set():
            self._stop_connectors()
        self._herder_thread.close(THREAD_STOP_TIMEOUT_S)
        self._close_stores()
        self._is_stopped.set()
        self._log("Herder stopped")

    def _stop_connectors(self) -> None:
        self._log("Stopping connectors and tasks that are still assigned to this worker.")
        within_s = 2 * self.settings.stop_timeout_s
        try:
            runs = self._herder_thread.call(self.connectors.stop_all, within_s)
        except RequestFailed as error:
            log.warning("Connectors and tasks could not be told to stop: %s", error)
            return
        deadline = time.monotonic() + within_s
        for run in runs:
            if not run.join(deadline - time.monotonic()):
                log.warning("%s did not stop within %.0f s", run.name, within_s)

    def _run_start(self) -> None:
        try:
            self._log("Herder starting")
            self._open_stores()
            if not self._is_stopping:
                self._start_connectors()
        except Exception as error:
            if self._is_stopping:
                log.info("The start was broken off: %s", error)
            else:
                prefix = self.settings.log_prefix
                log.exception("%sUncaught exception in herder work thread, exiting: ", prefix)
                self._failure = error
                self._is_stopped.set()
        self._has_started.set()

    def _open_stores(self) -> None:
        stores = self._stores
        with self.tick_stage.enter("reading the offsets topic"):
            stores.offsets.start()
        with self.tick_stage.enter("reading the status topic"):
            stores.statuses.start()
        with self.tick_stage.enter("reading the config topic"):
            stores.configs.start(self._on_change)
            stores.configs.claim_write_privileges()

    def _start_connectors(self) -> None:
        self._membership.join(self._stores.statuses)
        self.statuses.mark_unassigned(self._stores.configs.snapshot().connectors())
        offset = self._stores.configs.offset()
        self._log(f"Starting connectors and tasks using config offset {offset}")
        with self.tick_stage.enter("starting connectors and tasks"):
            self.connectors.reconcile_all()
        self._log("Finished starting connectors and tasks")
        self._log("Herder started")

    def _close_stores(self) -> None:
        for store in (self._stores.statuses, self._stores.configs, self._stores.offsets):
            store.stop()

    def _log(self, line: str) -> None:
        log.info("%s%s", self.settings.log_prefix, line)

    # -- being asked -----------------------------------------------------------------------------

    def call(self, question: Callable[[], Answer]) -> Answer:
        """Have something done by the herder's thread, and wait for it."""
        self.await_queries()
        return self._herder_thread.call(question, self.settings.request_timeout_s)

    def call_with_future(self, errand: Callable[[Future[Answer]], None]) -> Answer:
        """Have something begun by the herder's thread, and wait for the answer."""
        self.await_queries()
        return self._herder_thread.call_with_future(errand, self.settings.request_timeout_s)

    def is_responsive(self, within_s: float) -> bool:
        """Say whether the herder's thread takes part in life."""
        try:
            self._herder_thread.call(lambda: None, within_s)
        except RequestFailed:
            return False
        return self._failure is None

    @property
    def has_started(self) -> bool:
        """Whether the start is over, well or badly."""
        return self._has_started.is_set()

    def await_queries(self) -> ConnectorQueries:
        """What can be read, once the stores have been."""
        if not self._has_started.wait(self.settings.request_timeout_s):
            raise RequestFailed(f"Request timed out. {self.tick_stage.summary()}".rstrip())
        if self._failure is not None:
            raise RequestFailed(f"The worker could not start: {self._failure}")
        return self.queries

    # -- changes of the config topic -------------------------------------------------------------

    def _on_change(self, change: ConfigRecord) -> None:
        self._herder_thread.submit(partial(self._apply_change, change))

    def _apply_change(self, change: ConfigRecord) -> None:
        match change:
            case ConnectorConfig():
                self.connectors.on_connector_config_update(change.connector)
            case TasksCommit():
                self.connectors.on_task_config_update(change.connector)
            case ConnectorTargetState():
                self.connectors.reconcile(change.connector)
            case RestartRequest():
                self._handle_restart_request(change)
            case ClusterLoggerLevel():
                self._log_levels.set_level(change.namespace, change.level)
            case _:
                pass  # session keys and fencing concern whoever looks for them

    def _handle_restart_request(self, request: RestartRequest) -> None:
        try:
            plan = plan_restart(request, self.queries.connector_status(request.connector))
        except NotFound:
            log.info("Connector %s has no status, so it is not restarted", request.connector)
            return
        self.connectors.restart_connector_and_tasks(
            request.connector, connector=plan.connector, tasks=plan.tasks
        )
