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

from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.definition.value_types import trim
from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.worker_group import WorkerGroup
from sparkmirror.connect.herder import worker_health
from sparkmirror.connect.herder.config_update_listener import ConfigUpdateListener
from sparkmirror.connect.herder.config_validator import ConfigValidator
from sparkmirror.connect.herder.connector_queries import ConnectorQueries, Queries
from sparkmirror.connect.herder.dedicated_file_connectors import (
    DedicatedFileConnectors,
    QueriesWithFallback,
)
from sparkmirror.connect.herder.herder import ConnectorStateInfo, WorkerStatus
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.herder_lifecycle import HerderLifecycle
from sparkmirror.connect.herder.mirror_monitor_api import HerderFigures, StartupSummary
from sparkmirror.connect.herder.rebalance_listener import HerderRebalanceListener
from sparkmirror.connect.herder.requests.config_requests import ConfigRequests
from sparkmirror.connect.herder.requests.offset_requests import OffsetRequests
from sparkmirror.connect.herder.requests.restart_requests import RestartRequests
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.internal_requests.session_keys import SessionKeys
from sparkmirror.connect.runtime.config_transformer import ConfigTransformer
from sparkmirror.connect.runtime.fencing.zombie_fencing import ZombieFencing
from sparkmirror.connect.runtime.fencing.zombie_fencing_request import ZombieFencingRequest
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.connect.runtime.status.startup_counts import StartupCounts
from sparkmirror.connect.runtime.status.status_writer import StatusWriter
from sparkmirror.connect.runtime.threads.herder_thread import CallWatch, HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connectors import WorkerConnectors
from sparkmirror.connect.runtime.worker_generation import WorkerGeneration
from sparkmirror.errors import (
    NotFound,
    RequestError,
    RequestFailed,
    WorkerStarting,
)
from sparkmirror.mirror.connect_topics.connect_configs import ConfigRecord
from sparkmirror.store.backing_stores import BackingStores

Result = TypeVar("Result")

START_PATIENCE_S = 3.0
"""How long a read waits for the end of a start without a known problem."""
NOT_STARTED = "The connector has not started yet."
BUSY_AFTER_S = 2.0
"""After which time `/health` says what the herder thread waits for."""


class HerderParts:
    """Builds the parts of a herder and runs functions on its thread."""

    def __init__(
        self, settings: WorkerSettings, stores: BackingStores, dependencies: HerderDependencies
    ) -> None:
        self.settings = settings
        self._stores = stores
        self.group = WorkerGroup(dependencies.member, dependencies.leader_requests)
        self._configured = dependencies.configured_connectors
        self._get_unconfigured = dependencies.get_unconfigured
        self.session_keys = SessionKeys(stores.configs, settings.inter_worker)
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
            self.group, tracks_topics=settings.tracks_topics,
        )  # fmt: skip
        self.restart_requests = RestartRequests(self.connectors, self.queries, self.config_requests)
        self._config_updates = ConfigUpdateListener(
            self.connectors, self.queries, dependencies.log_levels
        )
        self.lifecycle = HerderLifecycle(
            settings,
            stores,
            herder_thread=self._herder_thread,
            tick_stage=self._tick_stage,
            member=dependencies.member,
            rebalance_listener=HerderRebalanceListener(
                settings,
                stores,
                self.group,
                self.connectors,
                self._herder_thread,
                self._tick_stage,
                self.session_keys,
                dependencies.is_undivided,
                dependencies.get_url,
            ),
            connectors=self.connectors,
            on_config_change=self._on_config_change,
        )

    def _build_run_context(
        self, stores: BackingStores, dependencies: HerderDependencies
    ) -> RunContext:
        fencing = None
        self.fence_zombies: Callable[[str], None] = lambda _connector: None
        """Fences the producers of a connector's older tasks, as the leader."""
        if self.settings.capabilities.exactly_once:
            assert dependencies.fencer is not None, "exactly-once support needs a fencer"
            self.fence_zombies = ZombieFencing(
                stores.configs, dependencies.fencer, self.settings.group_id
            )
            fencing = ZombieFencingRequest(self.group, self.fence_zombies)
        return RunContext(
            registry=dependencies.registry,
            transformer=ConfigTransformer(dependencies.providers),
            herder_thread=self._herder_thread,
            stop_timeout_s=self.settings.stop_timeout_s,
            fence_zombies=fencing,
            on_tasks_ended=dependencies.on_tasks_ended,
            read_worker_values=dependencies.read_worker_values,
        )

    def _on_config_change(self, change: ConfigRecord) -> None:
        self._herder_thread.submit(partial(self._config_updates.apply, change))

    def find_queries(self) -> Queries:
        """Return what answers reads: the stores, or for what they do not have the file's configs.

        Waits a moment for the end of the start. Raises WorkerStarting if nothing is known yet.
        """
        has_stores = self.lifecycle.await_stores(self._start_patience_s())
        if has_stores and not self._configured:
            return self.queries
        if has_stores:
            waits_for = self._get_unconfigured() or NOT_STARTED
            return QueriesWithFallback(self.queries, self._configured_connectors(waits_for))
        waits_for = self.health().message
        if not self._configured:
            raise WorkerStarting(waits_for)
        return self._configured_connectors(waits_for)

    def _start_patience_s(self) -> float:
        """How long a read waits. With a file not after the first seconds, flow after flow."""
        return START_PATIENCE_S - (self.lifecycle.seconds_since_start if self._configured else 0.0)

    def _configured_connectors(self, waits_for: str) -> DedicatedFileConnectors:
        return DedicatedFileConnectors(
            configs=self._configured, worker_id=self.settings.worker_id, waits_for=waits_for
        )

    def require_connector_owner(self, name: str) -> None:
        """Raise NotOwner if another worker runs the connector, RebalanceNeeded if none does.

        A connector that does not exist has no owner: the request decides about it.
        """
        if self.config_requests.stored_config(name) is not None:
            self.group.require_connector_owner(name)

    def require_task_owner(self, name: str, task: int) -> None:
        """Raise NotOwner if another worker runs the task, RebalanceNeeded if none does."""
        if task < len(self._stores.configs.snapshot().task_configs(name)):
            self.group.require_task_owner(ConnectorTaskId(connector=name, task=task))

    def has_tasks_elsewhere(self, name: str) -> bool:
        """Return whether a stopped connector has statuses of tasks that other workers ran."""
        assignment = self.group.member.assignment()
        if assignment is None or self._stores.configs.snapshot().task_configs(name):
            return False
        others = {share.worker_id for share in assignment.shares.values()}
        others.discard(self.settings.worker_id)
        return any(status.worker_id in others for status in self.statuses.task_statuses(name))

    def call(self, function: Callable[[], Result], timeout_s: float | None = None) -> Result:
        """Run a function on the herder thread and return its result.

        The wait for the end of the start counts. Raises WorkerStarting then, else RequestFailed.
        """

        def action(future: Future[Result]) -> None:
            future.set_result(function())

        return self._call(action, self.settings.write_timeout_s if timeout_s is None else timeout_s)

    def call_with_future(self, action: Callable[[Future[Result]], None]) -> Result:
        """Run an action on the herder thread; wait until a later action completes its future."""
        return self._call(action, self.settings.request_timeout_s)

    def _call(self, action: Callable[[Future[Result]], None], timeout_s: float) -> Result:
        def checked_action(future: Future[Result]) -> None:
            self.lifecycle.raise_if_failed()
            action(future)

        watch = CallWatch(
            get_refusal=self._get_refusal,
            get_problem=self.lifecycle.problem,
            short_timeout_s=self.settings.write_timeout_s,
            place=self._place(),
        )
        try:
            return self._herder_thread.call_with_future(checked_action, timeout_s, watch)
        except RequestFailed:
            if self.lifecycle.has_started:
                raise
            raise WorkerStarting(self.health().message) from None

    def _get_refusal(self) -> RequestError | None:
        """Return an error if the worker has a problem during its start: that may last for long."""
        if self.lifecycle.has_started or not self.lifecycle.problem():
            return None
        return WorkerStarting(self.health().message)

    def _place(self) -> str:
        return f"Its topics are on {self._stores.cluster}." if self._stores.cluster else ""

    def health(self) -> WorkerStatus:
        """Return whether the worker can handle requests, and what is wrong with its connectors.

        Does not block.
        """
        stage, problem = self._tick_stage.summary(), self.lifecycle.problem()
        if not self.lifecycle.has_started:
            return worker_health.starting(stage, problem)
        wait_s = self._herder_thread.oldest_wait_s(since=self.lifecycle.ready_at)
        if problem or self.lifecycle.has_failed or wait_s >= self.settings.health_timeout_s:
            return worker_health.unhealthy(stage, problem)
        busy = f"{stage} {self._place()}".strip() if wait_s > BUSY_AFTER_S else ""
        unconfigured = self._get_unconfigured()
        if unconfigured:
            return worker_health.starting(busy, unconfigured)
        statuses = filter(None, map(self._find_status, self.queries.connectors()))
        unreadable = self._stores.configs.snapshot().unreadable_records()
        warnings = (busy, *unreadable, self.group.member.warning())
        return worker_health.ready(statuses, warnings)

    def figures(self) -> HerderFigures:
        """Return what is known of connectors and tasks. Does not block."""
        names = self.queries.connectors() if self.lifecycle.has_started else ()
        statuses = filter(None, map(self._find_status, names))
        connectors, tasks = self.connectors.connector_startups, self.connectors.task_startups
        return HerderFigures(
            worker_id=self.settings.worker_id,
            assignment=self.group.member.assignment(),
            statuses={status.name: status for status in statuses},
            classes={name: self._class_name(name) for name in names},
            connector_startups=_startup_summary(connectors),
            task_startups=_startup_summary(tasks),
            task_times=self.connectors.task_state_times.shares(),
        )

    def _class_name(self, name: str) -> str:
        config = self.config_requests.stored_config(name) or {}
        plugin = find_connector(trim(config.get(CONNECTOR_CLASS) or ""))
        return plugin.class_name if plugin else ""

    def _find_status(self, name: str) -> ConnectorStateInfo | None:
        try:
            return self.queries.connector_status(name)
        except NotFound:
            return None


def _startup_summary(counts: StartupCounts) -> StartupSummary:
    return StartupSummary(success=counts.success, failure=counts.failure)
