"""What a herder does when its group of workers is rebalanced.

member's thread ── on_assigned ──▶ herder thread ── leader: claim the write privileges
                                                 └─ run the own share
                ── on_revoked, on_lost ──▶ herder thread, and wait until everything has stopped
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from functools import partial

from sparkmirror.backoff import Backoff
from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.distributed.worker_group import WorkerGroup
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.internal_requests.session_keys import SessionKeys
from sparkmirror.connect.runtime.own_share import task_counts
from sparkmirror.connect.runtime.threads.herder_thread import CHECK_S, HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connectors import WorkerConnectors
from sparkmirror.connect.runtime.worker_generation import last_generation
from sparkmirror.errors import ClusterError, MirrorError, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties
from sparkmirror.store.backing_stores import BackingStores

log = logging.getLogger(__name__)

FIRST_CLAIM_TIMEOUT_S = 2.0
MAX_CLAIM_TIMEOUT_S = 20.0
"""How long one attempt to claim the write privileges may take; each further one twice as long."""
CLAIM_PAUSE_S = 1.0
READ_PATIENCE_S = 2.0
"""How long the leader waits for config records that another member has read already."""
CLAIM_FAILED = "The write privileges for configs cannot be claimed, trying again: "


class HerderRebalanceListener:
    """Implements WorkerRebalanceListener for one herder."""

    def __init__(
        self,
        settings: WorkerSettings,
        stores: BackingStores,
        group: WorkerGroup,
        connectors: WorkerConnectors,
        herder_thread: HerderThread,
        tick_stage: TickThreadStage,
        session_keys: SessionKeys,
        is_undivided: Callable[[ConfigProperties], bool],
        get_url: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._stores = stores
        self._group = group
        self._connectors = connectors
        self._herder_thread = herder_thread
        self._tick_stage = tick_stage
        self._session_keys = session_keys
        self._is_undivided = is_undivided
        self._get_url = get_url
        self._is_decided = threading.Event()
        """Set with the first assignment, or with the failure."""
        self._is_applied = False
        """Whether the start has run the first assignment."""
        self._is_key_renewal_scheduled = False
        self._has_claimed = False
        self._claim_timeouts = _claim_timeouts()
        self._claim_problem = ""
        self._failure: Exception | None = None
        self._on_failure: Callable[[Exception], None] = lambda _error: None

    # -- the start, on the herder thread ---------------------------------------------------------

    def join(
        self, stop_requested: threading.Event, on_failure: Callable[[Exception], None]
    ) -> None:
        """Join the group and wait for the first assignment. Raises what `on_failed` gets.

        `on_failure` gets a later failure.
        """
        self._group.member.start(self, self.worker_state, self.configured_work)
        while not stop_requested.is_set() and not self._is_decided.wait(CHECK_S):
            pass
        if self._failure is not None:
            raise self._failure
        self._on_failure = on_failure

    def claim_as_leader(self, stop_requested: threading.Event) -> None:
        """As the leader, claim the write privileges. Tries again until the cluster is available."""
        with self._tick_stage.enter("claiming the write privileges for configs"):
            while not stop_requested.is_set() and not self._claim():
                stop_requested.wait(CLAIM_PAUSE_S)

    def run_first_share(self) -> None:
        """Start the connectors and tasks of the first assignment."""
        self._is_applied = True
        self._connectors.assign(self._group.member.assignment())
        self._renew_session_key()

    def problem(self) -> str:
        """Return why this worker may not run, or cannot write configs; empty if it can."""
        return self._group.member.problem() or self._claim_problem

    # -- what the member asks --------------------------------------------------------------------

    def worker_state(self) -> WorkerState:
        """Return what this worker says when it joins: it runs its last share."""
        assignment = self._group.member.assignment()
        share = assignment.own_share if assignment is not None else None
        return WorkerState(
            worker_id=self._settings.worker_id,
            url=self._get_url(),
            config_offset=self._stores.configs.offset(),
            connectors=share.connectors if share else frozenset(),
            tasks=share.tasks if share else frozenset(),
        )

    def configured_work(self, min_offset: int) -> ConfiguredWork:
        """Return the connectors and tasks of the config topic, at least up to an offset.

        Waits a moment for records that another member has read. They lead to a rebalance later if
        they do not come in time.
        """
        deadline = time.monotonic() + READ_PATIENCE_S
        while self._stores.configs.offset() < min_offset and time.monotonic() < deadline:
            time.sleep(CHECK_S)
        offset = self._stores.configs.offset()
        configs = self._stores.configs.snapshot()
        return ConfiguredWork(
            task_counts=task_counts(configs),
            undivided=frozenset(
                name
                for name in configs.connectors()
                if self._is_undivided(configs.connector_config(name) or {})
            ),
            config_offset=offset,
            last_generation=last_generation(self._stores.statuses),
        )

    # -- WorkerRebalanceListener -----------------------------------------------------------------

    def is_prepared(self) -> bool:
        """Prepare for tasks of other members; return whether this worker may join them."""
        return self._connectors.is_prepared()

    def on_assigned(self, assignment: Assignment) -> None:
        """Run the own share."""
        self._is_decided.set()
        if self._herder_thread.is_current():
            self._apply(assignment)
        else:
            self._herder_thread.submit(partial(self._apply, assignment))

    def on_revoked(self, connectors: Collection[str], tasks: Collection[ConnectorTaskId]) -> None:
        """Wait until these have stopped."""
        log.info(
            "%sStopping %d connectors and %d tasks that go to other workers or were deleted",
            self._settings.log_prefix, len(connectors), len(tasks),
        )  # fmt: skip
        names = {*connectors, *(task.connector for task in tasks)}
        self._await_stops(partial(self._connectors.stop_waits, names))

    def on_lost(self) -> None:
        """Stop everything."""
        log.warning(
            "%sThis worker was away for too long, and its group has other workers: it stops its "
            "connectors and tasks and joins again",
            self._settings.log_prefix,
        )
        self._has_claimed = False
        try:
            self._stores.statuses.refresh()  # statuses of new owners are not overwritten
        except ClusterError as error:
            log.info("The status topic was not read to its end: %s", error)

        def stop_all() -> list[Callable[[float], bool]]:
            self._connectors.assign(None)
            return self._connectors.stop_waits(self._connectors.running_names())

        self._await_stops(stop_all)

    def on_failed(self, error: Exception) -> None:
        """End the worker."""
        log.error("%sThis worker ends: %s", self._settings.log_prefix, error)
        self._failure = error
        self._is_decided.set()
        self._on_failure(error)

    # -- the herder thread -----------------------------------------------------------------------

    def _apply(self, assignment: Assignment) -> None:
        latest = self._group.member.assignment()
        if not self._is_applied or latest is None or latest.generation > assignment.generation:
            return  # the start, `on_lost` or a later call does it
        self._connectors.assign(assignment)
        if assignment.is_leader:
            self._claim_and_repeat()
            self._renew_session_key()
        else:
            self._has_claimed, self._claim_problem = False, ""

    def _claim_and_repeat(self) -> None:
        """Claim the write privileges; after a failure once more after a pause."""
        if self._group.is_leader() and not self._has_claimed:
            try:
                with self._tick_stage.enter("claiming the write privileges for configs"):
                    is_claimed = self._claim()
            except ClusterError as error:
                self._claim_problem, is_claimed = f"{CLAIM_FAILED}{error}", False
            if not is_claimed:
                self._herder_thread.schedule(CLAIM_PAUSE_S, self._claim_and_repeat)

    def _claim(self) -> bool:
        """Become the only writer of configs; return whether that, or nothing, was to be done."""
        if not self._group.is_leader():
            return True
        try:
            self._stores.configs.claim_write_privileges(self._claim_timeouts.next_delay_s())
        except ClusterError as error:
            if not error.retriable:
                raise
            if not self._claim_problem:
                log.warning("%s%s%s", self._settings.log_prefix, CLAIM_FAILED, error)
            self._claim_problem = f"{CLAIM_FAILED}{error}"
            return False
        self._claim_problem, self._has_claimed = "", True
        self._claim_timeouts = _claim_timeouts()
        return True

    def _renew_session_key(self) -> None:
        """As the leader of several workers, write a session key if one is needed; look again later.

        A lone worker sends no requests to others and needs no key.
        """
        assignment = self._group.member.assignment()
        is_needed = assignment is not None and assignment.is_leader and len(assignment.shares) > 1
        if not is_needed or self._is_key_renewal_scheduled:
            return
        try:
            with self._tick_stage.enter("writing a session key to Kafka"):
                delay_s = self._session_keys.replace_expired_key()
        except MirrorError as error:
            log.warning("%sNo session key was written, trying again: %s",
                        self._settings.log_prefix, error)  # fmt: skip
            delay_s = CLAIM_PAUSE_S
        if delay_s is not None:
            self._is_key_renewal_scheduled = True
            self._herder_thread.schedule(max(delay_s, CLAIM_PAUSE_S), self._renew_later)

    def _renew_later(self) -> None:
        self._is_key_renewal_scheduled = False
        self._renew_session_key()

    def _await_stops(self, request: Callable[[], list[Callable[[float], bool]]]) -> None:
        """Request stops on the herder thread and wait for them, as long as a stop may take."""
        timeout_s = 2 * self._settings.stop_timeout_s
        try:
            waits = self._herder_thread.call(request, timeout_s)
        except RequestFailed as error:
            log.warning("Connectors and tasks keep running: the herder thread hangs: %s", error)
            return
        deadline = time.monotonic() + timeout_s
        if not all(wait(max(deadline - time.monotonic(), 0.0)) for wait in waits):
            log.warning("Some connectors or tasks did not stop within %.0f s", timeout_s)


def _claim_timeouts() -> Backoff:
    return Backoff(initial_s=FIRST_CLAIM_TIMEOUT_S, max_s=MAX_CLAIM_TIMEOUT_S)
