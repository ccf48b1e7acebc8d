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

from sparkmirror.config.variables import Provider
from sparkmirror.connect.answers import Answers
from sparkmirror.connect.config_requests import ConfigRequests
from sparkmirror.connect.errands import Errands
from sparkmirror.connect.expansion import Expander
from sparkmirror.connect.fencing import Fence, Fencing
from sparkmirror.connect.herd import Herd
from sparkmirror.connect.herding import WorkerInfo
from sparkmirror.connect.kinds import ConnectorKinds
from sparkmirror.connect.log_levels import LogLevels
from sparkmirror.connect.membership import Membership
from sparkmirror.connect.offset_requests import OffsetRequests
from sparkmirror.connect.place import Means
from sparkmirror.connect.restart_plan import restart_plan
from sparkmirror.connect.settings import WorkerSettings
from sparkmirror.connect.stages import Stages
from sparkmirror.connect.statuses import StatusBook
from sparkmirror.errors import NotFound, RequestFailed
from sparkmirror.mirror.connect_configs import (
    ConfigRecord,
    ConnectorConfig,
    ConnectorTargetState,
    LoggerLevel,
    RestartRequest,
    TasksCommit,
)
from sparkmirror.store.stores import Stores

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

ENDING_S = 5.0
"""How long the herder's own thread may take to end, once connectors and tasks have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a herder is given beside its settings and stores."""

    kinds: ConnectorKinds
    about: Callable[[], WorkerInfo]
    """Version, and the cluster that keeps the stores, as far as it is known yet."""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    fence: Fence | None = None
    """Needed with exactly-once support."""
    log_levels: LogLevels = field(default_factory=LogLevels)
    """One for the whole process, however many herders it holds."""


class WorkerLife:
    """One worker, from its start to its end, and the parts that a herder asks."""

    def __init__(
        self, settings: WorkerSettings, stores: Stores, surroundings: Surroundings
    ) -> None:
        self.settings = settings
        self.stages = Stages()
        self.answers = Answers(
            stores.configs, stores.statuses, tracks_topics=settings.tracks_topics
        )
        self.requests = ConfigRequests(stores.configs, self.stages)
        self._stores = stores
        self._log_levels = surroundings.log_levels
        self._errands = Errands(f"DistributedHerder-{settings.worker_id}", self.stages)
        self._member = Membership(settings.worker_id)
        self.book = StatusBook(stores.statuses, self._member)
        fence = None
        if settings.terms.exactly_once:
            assert surroundings.fence is not None, "exactly-once support needs a fence"
            fence = Fencing(stores.configs, surroundings.fence, settings.group_id)
        means = Means(
            kinds=surroundings.kinds,
            expander=Expander(surroundings.providers),
            errands=self._errands,
            stop_within_s=settings.stop_within_s,
            fence=fence,
        )
        self.offsets = OffsetRequests(stores.configs, stores.offsets, means)
        self.herd = Herd(
            means, stores.configs, self.book, self._member, self.stages,
            tracks_topics=settings.tracks_topics,
        )  # fmt: skip
        self._has_started = threading.Event()
        self._is_over = threading.Event()
        self._is_begun = False
        self._is_ending = False
        self._failure: Exception | None = None

    # -- beginning and end -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin; returns at once. Whoever asks something waits until the start is over."""
        self._is_begun = True
        self._errands.post(self._begin)
        self._errands.start()

    def wait_started(self, within_s: float) -> bool:
        """Wait for the end of the start; say whether it came. Raises what made it fail."""
        started = self._has_started.wait(within_s)
        if self._failure is not None:
            raise self._failure
        return started

    def wait_over(self, within_s: float | None = None) -> Exception | None:
        """Wait until it has ended, or died: then return why."""
        self._is_over.wait(within_s)
        return self._failure

    def shut_down(self) -> None:
        """End connectors and tasks, write that down, close the stores."""
        self._log("Herder stopping")
        self._is_ending = True
        if self._is_begun and not self._has_started.is_set():
            self._close_stores()  # what the start may wait in
            self._has_started.wait(ENDING_S)
        if self._has_started.is_set():
            self._leave()
        self._errands.close(ENDING_S)
        self._close_stores()
        self._is_over.set()
        self._log("Herder stopped")

    def _leave(self) -> None:
        self._log("Stopping connectors and tasks that are still assigned to this worker.")
        within_s = 2 * self.settings.stop_within_s
        try:
            runs = self._errands.ask(self.herd.leave, within_s)
        except RequestFailed as error:
            log.warning("Connectors and tasks could not be told to stop: %s", error)
            return
        deadline = time.monotonic() + within_s
        for run in runs:
            if not run.join(deadline - time.monotonic()):
                log.warning("%s did not stop within %.0f s", run.name, within_s)

    def _begin(self) -> None:
        try:
            self._log("Herder starting")
            self._open_stores()
            if not self._is_ending:
                self._settle()
        except Exception as error:
            if self._is_ending:
                log.info("The start was broken off: %s", error)
            else:
                prefix = self.settings.log_prefix
                log.exception("%sUncaught exception in herder work thread, exiting: ", prefix)
                self._failure = error
                self._is_over.set()
        self._has_started.set()

    def _open_stores(self) -> None:
        stores = self._stores
        with self.stages.now("reading the offsets topic"):
            stores.offsets.start()
        with self.stages.now("reading the status topic"):
            stores.statuses.start()
        with self.stages.now("reading the config topic"):
            stores.configs.start(self._on_change)
            stores.configs.claim()

    def _settle(self) -> None:
        self._member.join(self._stores.statuses)
        self.book.take_over(self._stores.configs.snapshot().connectors())
        offset = self._stores.configs.offset()
        self._log(f"Starting connectors and tasks using config offset {offset}")
        with self.stages.now("starting connectors and tasks"):
            self.herd.settle_all()
        self._log("Finished starting connectors and tasks")
        self._log("Herder started")

    def _close_stores(self) -> None:
        for store in (self._stores.statuses, self._stores.configs, self._stores.offsets):
            store.stop()

    def _log(self, line: str) -> None:
        log.info("%s%s", self.settings.log_prefix, line)

    # -- being asked -----------------------------------------------------------------------------

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Have something done by the herder's thread, and wait for it."""
        self.reading()
        return self._errands.ask(question, self.settings.request_timeout_s)

    def ask_for(self, errand: Callable[[Future[Answer]], None]) -> Answer:
        """Have something begun by the herder's thread, and wait for the answer."""
        self.reading()
        return self._errands.ask_for(errand, self.settings.request_timeout_s)

    def is_alive(self, within_s: float) -> bool:
        """Say whether the herder's thread takes part in life."""
        try:
            self._errands.ask(lambda: None, within_s)
        except RequestFailed:
            return False
        return self._failure is None

    @property
    def has_started(self) -> bool:
        """Whether the start is over, well or badly."""
        return self._has_started.is_set()

    def reading(self) -> Answers:
        """What can be read, once the stores have been."""
        if not self._has_started.wait(self.settings.request_timeout_s):
            raise RequestFailed(f"Request timed out. {self.stages.summary()}".rstrip())
        if self._failure is not None:
            raise RequestFailed(f"The worker could not start: {self._failure}")
        return self.answers

    # -- changes of the config topic -------------------------------------------------------------

    def _on_change(self, change: ConfigRecord) -> None:
        self._errands.post(partial(self._heed, change))

    def _heed(self, change: ConfigRecord) -> None:
        match change:
            case ConnectorConfig():
                self.herd.connector_written(change.connector)
            case TasksCommit():
                self.herd.tasks_written(change.connector)
            case ConnectorTargetState():
                self.herd.settle(change.connector)
            case RestartRequest():
                self._restart_as_asked(change)
            case LoggerLevel():
                self._log_levels.set_level(change.namespace, change.level)
            case _:
                pass  # session keys and fencing concern whoever looks for them

    def _restart_as_asked(self, request: RestartRequest) -> None:
        try:
            plan = restart_plan(request, self.answers.status(request.connector))
        except NotFound:
            log.info("Connector %s has no status, so it is not restarted", request.connector)
            return
        self.herd.restart_parts(request.connector, connector=plan.connector, tasks=plan.tasks)
