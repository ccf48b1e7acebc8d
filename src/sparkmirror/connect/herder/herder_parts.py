"""The parts of one herder, and how a request reaches them.

A query reads the stores in the calling thread. A change runs on the herder thread. Neither waits
long for a cluster: a query of a herder that starts answers from the file, a change fails with the
cause.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from sparkmirror.connect.herder import worker_health
from sparkmirror.connect.herder.config_changes import ConfigChanges
from sparkmirror.connect.herder.config_validator import ConfigValidator
from sparkmirror.connect.herder.configured_connectors import ConfiguredConnectors
from sparkmirror.connect.herder.connector_queries import ConnectorQueries, Queries
from sparkmirror.connect.herder.herder import ConnectorStateInfo, WorkerStatus
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.herder_lifecycle import HerderLifecycle
from sparkmirror.connect.herder.requests.config_requests import ConfigRequests
from sparkmirror.connect.herder.requests.offset_requests import OffsetRequests
from sparkmirror.connect.herder.requests.restart_requests import RestartRequests
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.runtime.config_transformer import ConfigTransformer
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.connect.runtime.status.status_writer import StatusWriter
from sparkmirror.connect.runtime.threads.herder_thread import HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connectors import WorkerConnectors
from sparkmirror.connect.runtime.worker_generation import WorkerGeneration
from sparkmirror.connect.runtime.zombie_fencing import ZombieFencing
from sparkmirror.errors import NotFound, RequestFailed, WorkerStarting
from sparkmirror.mirror.connect_topics.connect_configs import ConfigRecord
from sparkmirror.store.backing_stores import BackingStores

Result = TypeVar("Result")

START_PATIENCE_S = 3.0
"""How long a read waits for the end of a start without a known problem."""
WRITE_PATIENCE_S = 9.0
"""How long a change waits for the end of a start without a known problem."""


class HerderParts:
    """Builds the parts of a herder and runs functions on its thread."""

    def __init__(
        self, settings: WorkerSettings, stores: BackingStores, dependencies: HerderDependencies
    ) -> None:
        self.settings = settings
        self._stores = stores
        self._worker_membership = dependencies.worker_membership
        self._configured = dependencies.configured_connectors
        self._get_unconfigured = dependencies.get_unconfigured
        self.validator = ConfigValidator(settings.capabilities, dependencies.providers)
        self._tick_stage = TickThreadStage()
        self._herder_thread = HerderThread(
            f"DistributedHerder-{settings.worker_id}", self._tick_stage
        )
        self.queries = ConnectorQueries(
            stores.configs, stores.statuses, tracks_topics=settings.tracks_topics
        )
        self.config_requests = ConfigRequests(stores.configs, self._tick_stage)
        run_context = self._build_run_context(stores, dependencies)
        self.offset_requests = OffsetRequests(stores.configs, stores.offsets, run_context)
        worker_generation = WorkerGeneration(settings.worker_id)
        self.statuses = StatusWriter(stores.statuses, worker_generation)
        self.connectors = WorkerConnectors(
            run_context, stores.configs, self.statuses, worker_generation, self._tick_stage,
            tracks_topics=settings.tracks_topics,
        )  # fmt: skip
        self.restart_requests = RestartRequests(self.connectors, self.queries, self.config_requests)
        self._config_changes = ConfigChanges(self.connectors, self.queries, dependencies.log_levels)
        self.lifecycle = HerderLifecycle(
            settings,
            stores,
            herder_thread=self._herder_thread,
            tick_stage=self._tick_stage,
            worker_generation=worker_generation,
            worker_membership=dependencies.worker_membership,
            statuses=self.statuses,
            connectors=self.connectors,
            on_config_change=self._on_config_change,
        )

    def _build_run_context(
        self, stores: BackingStores, dependencies: HerderDependencies
    ) -> RunContext:
        fencing = None
        if self.settings.capabilities.exactly_once:
            assert dependencies.fencer is not None, "exactly-once support needs a fencer"
            fencing = ZombieFencing(stores.configs, dependencies.fencer, self.settings.group_id)
        return RunContext(
            registry=dependencies.registry,
            transformer=ConfigTransformer(dependencies.providers),
            herder_thread=self._herder_thread,
            stop_timeout_s=self.settings.stop_timeout_s,
            fence_zombies=fencing,
            on_tasks_ended=dependencies.on_tasks_ended,
        )

    def _on_config_change(self, change: ConfigRecord) -> None:
        self._herder_thread.submit(partial(self._config_changes.apply, change))

    def find_queries(self) -> Queries:
        """Return what answers reads: the stores, or before they are read what the file configures.

        Waits a moment for the end of the start. Raises WorkerStarting if nothing is known yet.
        """
        if self.lifecycle.await_stores(START_PATIENCE_S):
            return self.queries
        if not self._configured:
            raise WorkerStarting(self.health().message)
        return ConfiguredConnectors(
            configs=self._configured,
            worker_id=self.settings.worker_id,
            waits_for=self.health().message,
        )

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function on the herder thread and return its result."""
        self._require_started()
        return self._herder_thread.call(function, self.settings.request_timeout_s, self._problem)

    def call_with_future(self, action: Callable[[Future[Result]], None]) -> Result:
        """Run an action on the herder thread; wait until a later action completes its future."""
        self._require_started()
        return self._herder_thread.call_with_future(
            action, self.settings.request_timeout_s, self._problem
        )

    def _require_started(self) -> None:
        if not self.lifecycle.await_stores(WRITE_PATIENCE_S):
            raise WorkerStarting(self.health().message)

    def health(self) -> WorkerStatus:
        """Return whether the worker can handle requests, and what is wrong with its connectors."""
        stage, problem = self._tick_stage.summary(), self._problem()
        if not self.lifecycle.has_started:
            return worker_health.starting(stage, problem)
        if problem or self.lifecycle.has_failed or not self._is_responsive():
            return worker_health.unhealthy(self._tick_stage.summary(), problem)
        unconfigured = self._get_unconfigured()
        if unconfigured:
            return worker_health.starting("", unconfigured)
        names = self.queries.connectors()
        statuses = filter(None, map(self._find_status, names))
        return worker_health.ready(statuses, self._worker_membership.warning())

    def _problem(self) -> str:
        return self._stores.problem() or self._worker_membership.problem()

    def _find_status(self, name: str) -> ConnectorStateInfo | None:
        try:
            return self.queries.connector_status(name)
        except NotFound:
            return None

    def _is_responsive(self) -> bool:
        try:
            self._herder_thread.call(lambda: None, self.settings.health_timeout_s)
        except RequestFailed:
            return False
        return True
