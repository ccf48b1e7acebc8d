"""The conductor: grants leases to task attempts and resolves the partitions of those that end.

Runs in the driver, in its own thread with an inbox. It handles the messages of tasks
(`task_events`), grants leases (`lease_grants`), writes positions to the ledger (`ledger_cache`),
takes partitions from tasks that are silent, and fences and reconciles a partition whose lease did
not end cleanly (`doubtful_partition_resolver`) before another task attempt gets it.

    waiting ──grant──▶ leased ──clean end──▶ waiting (same identity, no fence)
       ▲                  └──anything else──▶ doubtful ──fence, reconcile──▶ waiting
       └──── after a backoff ── held (with a reason; all other partitions continue)

A conductor of a worker group shares its connector with the conductors of other workers, and each
partition has one owner. Such a conductor works only while its worker is a member of the group
(`sharing.worker_group_membership`). It closes the entries of partitions that leave the job at once,
and forgets the partitions.

In exactly-once mode a lease belongs to the transactional producer of its task
(`transactional_id_fencing`), and a doubtful partition resumes at the committed offset
(`transactional_takeover`).

Contract for the transport (`engine`): call `on_task_joined` when a task attempt has sent Hello,
`on_task_message` for every later message, `on_task_left` when its connection is closed; deliver the
messages given to `send`. These methods do not block and may be called from any thread. Answer each
ProgressReport with a ReportAck without asking the conductor, which may be busy. A lost attempt gets
AbortTask: it ends with an error, and a new attempt must be started. To end an epoch, either send
EndEpoch to tasks that copy on in the next epoch, and answer EpochEnded as soon as the conductor has
it; or call `end_epoch`: the conductor drains every connected task, and the attempts of the next
epoch get the same leases.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable

from sparkmirror.backoff import Backoff
from sparkmirror.copy.control.messages import ControlMessage, Hello, ProgressReport
from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.conductor_retry import ConductorRetry
from sparkmirror.copy.driver.fencing.doubtful_partition_resolver import DoubtfulPartitionResolver
from sparkmirror.copy.driver.fencing.fence import DriverFenced, PartitionFencer
from sparkmirror.copy.driver.fencing.producer_support import (
    ProducerSupport,
    require_transactions,
)
from sparkmirror.copy.driver.fencing.takeover import Takeover
from sparkmirror.copy.driver.fencing.transactional_id_fencing import TransactionalIdFencing
from sparkmirror.copy.driver.fencing.transactional_takeover import TransactionalTakeover
from sparkmirror.copy.driver.job_partitions import JobPartitions
from sparkmirror.copy.driver.lease_grants import LeaseGranter
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.lost_attempt_receipts import LostAttemptReceipts, MissingReceipt
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.monitoring.snapshot_cache import SnapshotCache, SnapshotInputs
from sparkmirror.copy.driver.offset_translation_publisher import OffsetTranslationPublisher
from sparkmirror.copy.driver.resume.resume_point_finder import ResumePointFinder
from sparkmirror.copy.driver.run_map_store import RunMapStore
from sparkmirror.copy.driver.sharing.worker_group_membership import NOT_A_MEMBER, GroupMembership
from sparkmirror.copy.driver.task_attempts import SendMessage, TaskAttempt
from sparkmirror.copy.driver.task_events import TaskEventHandler
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.job import CopyJob, routing_job
from sparkmirror.copy.ledger import Ledger
from sparkmirror.copy.receipt import AttemptEpoch
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.copy.task.transform.converter_factory import (
    ConverterFactory,
    NewEvaluator,
    no_evaluator,
)
from sparkmirror.errors import MirrorError
from sparkmirror.logging_context import ContextThread
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

TICK_S = 0.1
MAX_TICK_S = 0.4
"""How often, first and later, the thread looks at partitions that wait for more than a message."""
IDLE_TICK_S = 5.0
"""How often the thread looks at partitions that only a message changes; it wakes it at once."""
MIN_WAIT_S = 0.01
"""The shortest wait of the thread, so that it does not spin while a deadline passes."""
MEMBERSHIP_TIMEOUT_S = 5.0
"""How long a conductor that starts waits for the membership of its worker."""
PROBE_INTERVAL_S = 1.0
"""How often the thread tries again what a cluster or the missing membership prevents."""


class Conductor:
    """Grants leases and keeps the ledger. Use: `start()`, feed events, `drain()`, `stop()`."""

    def __init__(
        self,
        job: CopyJob,
        ledger: Ledger,
        runs: RunMapStore | None = None,
        new_evaluator: NewEvaluator = no_evaluator,
    ) -> None:
        """Without a store for run maps, they are lost when the driver ends.

        Blocks until Spark has checked the query of the job, if it has one. Raises ConfigError.
        """
        self._converters = ConverterFactory.for_reconcile(job.settings, new_evaluator)
        job = self._in_needed_mode(job)
        self._membership = GroupMembership(is_required=job.is_shared)
        self._progress = OffsetTranslationPublisher.for_job(job, runs, self._membership.is_valid)
        self._lock = threading.Lock()
        self._events = EventLog()
        self._snapshots = SnapshotCache()
        self._pending_receipts = LostAttemptReceipts(lambda: time.time_ns() // 1_000_000)
        longest_id = f"{job.group_id}-{job.connector}-{job.task_count}"
        self._clusters = ClusterQueries.create(
            job.settings, longest_id if job.is_exactly_once else ""
        )
        self._transactional_ids = TransactionalIdFencing(self._clusters.target, job)
        write = self._transactional_ids.write_entries if job.is_exactly_once else None
        conductor_id = secrets.token_hex(8) if job.is_shared else ""
        self._ledger_cache = LedgerCache(ledger, self._lock, write, conductor_id)
        self._transactional_takeover = TransactionalTakeover(
            clusters=self._clusters,
            transactional_ids=self._transactional_ids,
            ledger_cache=self._ledger_cache,
            publish=self._events.publish,
            lock=self._lock,
            membership=self._membership,
        )
        fences = PartitionFencer(
            self._clusters.target, f"{job.group_id}-{job.connector}", self._membership
        )
        self._fences = fences
        self._published_support = ProducerSupport()
        self._resume_points = ResumePointFinder(job, self._clusters, fences)
        self._lease_granter = LeaseGranter(
            self._clusters,
            self._resume_points,
            self._ledger_cache,
            self._events,
            job.on_loss,
            self._membership,
        )
        self._job_partitions = JobPartitions(
            job=job, ledger_cache=self._ledger_cache, progress=self._progress
        )
        self._doubtful = DoubtfulPartitionResolver(
            job_partitions=self._job_partitions,
            takeover=Takeover(
                clusters=self._clusters,
                fences=fences,
                publish=self._events.publish,
                lease_timeout_s=job.settings.lease_timeout_s,
                converters=self._converters,
                policy_topics=lambda: self.job.policy_topics,
            ),
            transactional_takeover=self._transactional_takeover,
            ledger_cache=self._ledger_cache,
            lease_granter=self._lease_granter,
            pending_receipts=self._pending_receipts,
            membership=self._membership,
            lock=self._lock,
        )
        self._task_events = TaskEventHandler(
            job_partitions=self._job_partitions,
            ledger_cache=self._ledger_cache,
            events=self._events,
            progress=self._progress,
            resume_points=self._resume_points,
            lease_granter=self._lease_granter,
            pending_receipts=self._pending_receipts,
            may_fence=fences.may_fence,
            membership=self._membership,
        )
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._tick_pauses = Backoff(initial_s=TICK_S, max_s=MAX_TICK_S)
        self._thread = ContextThread(target=self._run, name="conductor")
        self._stopping = self._is_cancelled = False
        self._has_fenced_earlier_drivers = False
        self._failure: Exception | None = None
        self._flush_at = self._probe_at = 0.0
        self._needs_flush = False
        """Whether anything may have changed since the last flush."""
        self._unsettled = self._job_partitions.unsettled()
        """The partitions that a tick may change, as of the last tick."""
        self._problem = ConductorRetry(job)
        for router in (self._clusters.source, self._clusters.target):
            router.on_retry = self._problem.on_retry
        ledger.set_on_retry(self._problem.on_retry)

    @property
    def job(self) -> CopyJob:
        """The current job."""
        return self._job_partitions.job

    def _in_needed_mode(self, job: CopyJob) -> CopyJob:
        """Return the job, in transactions if its query computes topics. Raises ConfigError."""
        return routing_job(job) if self._converters.may_route_records else job

    @property
    def _partitions(self) -> dict[TopicPartition, TrackedPartition]:
        return self._job_partitions.tracked

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Connect to both clusters, read the ledger, start the thread. Blocks.

        Raises MirrorError, the first time within seconds. May be called again after that.
        """
        self._clusters.find_topics(
            {tracked.source.topic for tracked in self._partitions.values()},
            {tracked.target.topic for tracked in self._partitions.values()},
        )
        if self.job.is_exactly_once:
            require_transactions(
                self._fences.support,
                self.job.settings.target_alias,
                routes_records=self._converters.may_route_records,
            )
        self._ledger_cache.load()
        if self.job.tasks or not self.job.is_shared:
            self._fence_earlier_drivers(self._ledger_cache.load)
        self._progress.start()
        self._thread.start()

    def renew_membership(self, valid_until: float, *, is_alone: bool) -> None:
        """Set until when the worker is a member of its group; only for a job that is shared.

        `valid_until` is a moment of the monotonic clock, `is_alone` says that the group has no
        other member. The thread wakes if it may work again, or must stop sooner.
        """
        if self._membership.renew(valid_until, is_alone=is_alone):
            self._inbox.put(lambda: None)

    def on_task_joined(self, hello: Hello, send: SendMessage) -> None:
        """Add a task attempt; it gets its Welcome and its leases through `send`."""
        self._inbox.put(
            lambda: self._task_events.on_joined(TaskAttempt(hello, send, time.monotonic()))
        )

    def on_task_message(self, hello: Hello, message: ControlMessage) -> None:
        """Handle a message of a task attempt (ProgressReport, LeaseEnded, TaskDone).

        The snapshot shows the reasons of a report at once. The thread may wait for a cluster that
        does not answer, and just then the operator needs the reasons. For the same reason a report
        is when leases are taken back that no fence ends, if the worker has lost its membership. A
        report without news does not wake the thread.
        """
        if isinstance(message, ProgressReport):
            with self._lock:
                self._task_events.show_report(hello, message)
                if message.is_empty:
                    return
                self._snapshots.invalidate()
        self._inbox.put(lambda: self._task_events.on_message(hello, message))

    def on_task_left(self, hello: Hello) -> None:
        """Handle the end of a task attempt's connection."""
        self._inbox.put(
            lambda: self._task_events.on_attempt_lost(hello, "its connection is closed")
        )

    def drain(self) -> None:
        """Ask every task for all its leases, and write the positions to the ledger."""
        self._inbox.put(self._task_events.drain)

    def end_epoch(self) -> None:
        """Ask the connected tasks for all leases; the attempts of the next epoch get them."""
        self._inbox.put(self._task_events.end_epoch)

    def drain_tasks(self, tasks: Collection[int]) -> None:
        """Ask the connected attempts of these tasks for all leases; later attempts get them."""
        self._inbox.put(lambda: self._task_events.drain_tasks(tasks))

    def replan(self, job: CopyJob) -> None:
        """Continue with another job of the same connector, on the same clusters.

        A partition that stays with its task is not interrupted; one that moves is revoked first.
        """
        self._inbox.put(lambda: self._task_events.replan(self._in_needed_mode(job)))

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to this rate; 0 means no limit."""
        self._inbox.put(lambda: self._task_events.set_rate(bytes_per_s))

    def snapshot(self) -> CopySnapshot:
        """Return the state of all partitions as of the last reports. Cheap; any thread."""
        error = self._problem.text
        if not error and not self._membership.is_valid():
            error = NOT_A_MEMBER
        now = time.monotonic()
        with self._lock:
            inputs = SnapshotInputs(
                silent_attempts=self._task_events.silent_attempts(now),
                driver_error=error,
                events=self._events.latest(),
            )
            snapshot = self._snapshots.find(inputs)
            if snapshot is None:
                snapshot = self._task_events.snapshot(now, error)
                if self._is_quiet(self._partitions.values()):
                    self._snapshots.store(inputs, snapshot)
            return snapshot

    def problems(self) -> list[str]:
        """Return what cannot be written now, and why: positions, run maps, offset syncs."""
        error = self._problem.text
        of_positions = f"the driver cannot grant leases or write positions: {error}"
        # Positions and run maps are in the same topic: one cause is enough.
        of_ledger = of_positions if error else self._progress.run_map_problem()
        return [*filter(None, [of_ledger, self._progress.sync_problem(self.job.settings)])]

    def runs(self, partition: TopicPartition) -> tuple[OffsetRun, ...]:
        """Return the run map of a source partition."""
        with self._lock:
            return tuple(self._partitions[partition].runs)

    def is_drained(self) -> bool:
        """Whether `drain` was called and no partition is leased any more."""
        with self._lock:
            return self._task_events.is_drained

    def close_epoch(self, epoch: int, returned: Collection[AttemptEpoch]) -> list[MissingReceipt]:
        """End an epoch; returns the receipts that none of its attempts has returned."""
        with self._lock:
            return self._pending_receipts.close_epoch(epoch, returned)

    def failure(self) -> Exception | None:
        """Return the error that ended the thread (another driver took over, a bug), or None."""
        return self._failure

    def cancel(self) -> None:
        """Give up: end all calls to the clusters and write nothing more. Call `stop` after it."""
        self._is_cancelled = self._stopping = True
        self._clusters.cancel()
        self._ledger_cache.cancel()
        self._progress.cancel()

    def stop(self) -> None:
        """Flush, end the thread, close all connections and the ledger."""
        self._stopping = True
        self._inbox.put(lambda: None)  # wakes the thread
        if self._thread.is_alive():
            self._thread.join(timeout=30)
        self._progress.stop()
        self._clusters.close()
        self._ledger_cache.close()

    def _fence_earlier_drivers(self, read_ledger: Callable[[], None]) -> None:
        """End what earlier drivers may still do in transactions, then read the ledger. Blocks.

        A conductor that shares the connector and has no task yet leaves that for later: until its
        worker gets a task, other conductors own everything.
        """
        if self.job.is_exactly_once or self._ledger_cache.has_transactional_entries:
            self._fence_all()
            read_ledger()
            if not self.job.is_exactly_once:
                self._transactional_ids.end_hanging_transactions(
                    self._ledger_cache.committed_target_ends(self._partitions.values())
                )
        self._has_fenced_earlier_drivers = True

    def _fence_all(self) -> None:
        """Fence all ids, while the worker is a member of its group."""
        while True:
            self._membership.await_valid(MEMBERSHIP_TIMEOUT_S)
            try:
                self._transactional_ids.fence_all(self.job)
            except DriverFenced:
                if not self._membership.is_required:
                    raise
                time.sleep(TICK_S)
            else:
                return

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._run_inbox()
                self._tick(time.monotonic())
            if not self._is_cancelled:
                self._run_inbox()
            if not self._is_cancelled and self._membership.is_valid():
                self._progress.flush(self._partitions.values())
                self._ledger_cache.flush(self._partitions.values())
        except MirrorError as error:
            log.error("Connector %s: the conductor stops: %s", self.job.connector, error)
            self._failure = error
        except Exception as error:
            log.exception("Connector %s: the conductor stops", self.job.connector)
            self._failure = error

    def _run_inbox(self) -> None:
        """Run all steps in the inbox; waits for the first until the next tick is due."""
        try:
            step = self._inbox.get(timeout=self._wait_s(time.monotonic()))
            while True:
                self._needs_flush = True
                self._tick_pauses.reset()
                with self._lock:
                    self._snapshots.invalidate()
                    step()
                step = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _wait_s(self, now: float) -> float:
        """Return how long nothing but a message gives the thread something to do."""
        if not self._is_quiet(self._unsettled):
            return self._tick_pauses.next_delay_s()
        self._tick_pauses.reset()
        is_waiting_for_others = any(
            not tracked.is_planned and tracked.state in (LeaseState.DOUBTFUL, LeaseState.HELD)
            for tracked in self._unsettled
        )
        if not self._partitions:
            return IDLE_TICK_S
        if self._problem.text or is_waiting_for_others or not self._membership.is_valid():
            return PROBE_INTERVAL_S
        until = min(
            now + IDLE_TICK_S,
            self._task_events.attempts.oldest_message_at() + self.job.task_timeout_s,
            self._membership.valid_until,
        )
        if self._needs_flush:
            until = min(until, self._flush_at)
        return max(until - now, MIN_WAIT_S)

    def _is_quiet(self, partitions: Iterable[TrackedPartition]) -> bool:
        """Whether only a message can change anything. `partitions` has all that are not leased.

        That is so if every planned partition is leased, or waits for the first attempt of its task.
        """
        has_attempts = bool(self._task_events.attempts.active())
        return not self._stopping and all(
            tracked.state is LeaseState.LEASED
            or not tracked.is_planned
            or (tracked.is_new and not has_attempts)
            for tracked in partitions
        )

    def _tick(self, now: float) -> None:
        """Expire, resolve, grant, flush. After an error of a cluster it tries again, later."""
        with self._lock:
            self._task_events.expire_silent(now)
            self._unsettled = self._job_partitions.unsettled()
            if not self._is_quiet(self._unsettled):
                self._needs_flush = True
                self._snapshots.invalidate()
            for tracked in self._unsettled:
                tracked.end_hold_if_due(now)
            if not self._membership.is_valid():
                self._task_events.revoke_unfenceable(now)
        if not self._problem.is_due(now):
            return
        try:
            if self._membership.is_valid():
                self._work(now)
                self._publish_support()
                self._problem.on_success()
                return
            if now < self._probe_at or not self._partitions:
                return  # the error of the last probe stands, or it concerns nothing
            self._probe_target(now)
            self._problem.on_success()
        except DriverFenced as error:
            if not self._membership.is_required:
                raise
            log.warning(
                "Connector %s: another conductor uses its ids: %s", self.job.connector, error
            )
            with self._lock:
                self._task_events.on_ids_lost(self._transactional_ids.has_fenced)
        except MirrorError as error:
            self._problem.on_failure(error, time.monotonic())

    def _work(self, now: float) -> None:
        """Resolve, grant, flush: what only the owner of the partitions may do."""
        if not self._has_fenced_earlier_drivers:
            if not self.job.tasks:
                self._needs_flush = False  # it owns nothing
                return
            if not self.job.is_exactly_once:
                self._ledger_cache.reload()
            self._fence_earlier_drivers(self._ledger_cache.reload)
        if self.job.is_shared:
            self._give_back()
        self._doubtful.resolve(now, self._unsettled)
        self._grant_all(now)
        self._progress.restore(self._partitions, self._unsettled)
        if self._task_events.is_draining or now >= self._flush_at:
            self._progress.flush(self._partitions.values())
            self._ledger_cache.flush(self._partitions.values())
            self._flush_at = now + self.job.flush_interval_s
            self._needs_flush = False

    def _publish_support(self) -> None:
        """Say once what the target lacks, with the first partition of the job."""
        support = self._fences.known_support
        if support == self._published_support:
            return
        self._published_support = support
        with self._lock:
            if support.event and self._partitions:
                kind, text = support.event
                self._events.publish(kind, min(self._partitions.values(), key=_source_of), text)

    def _give_back(self) -> None:
        """Close the entries of partitions that left the job, for their next owner; forget them."""
        left = [tracked for tracked in self._unsettled if not tracked.is_planned]
        returned = [tracked for tracked in left if tracked.state is LeaseState.WAITING]
        if returned:
            self._progress.flush(returned)
            self._ledger_cache.flush(returned)
        if left:
            with self._lock:
                if returned:
                    self._snapshots.invalidate()
                self._job_partitions.forget_unplanned(left)
                self._unsettled = self._job_partitions.unsettled()

    def _probe_target(self, now: float) -> None:
        """Ask the target for metadata: an operator must see why the membership cannot be renewed.

        Raises ClusterError.
        """
        self._probe_at = now + PROBE_INTERVAL_S
        self._clusters.target.refresh({p.target.topic for p in self._partitions.values()})

    def _grant_all(self, now: float) -> None:
        if self._task_events.is_draining:
            return
        attempts = {a.hello.task: a for a in self._task_events.attempts.active()}
        waiting_for: dict[int, list[TrackedPartition]] = {task: [] for task in attempts}
        for tracked in self._unsettled:
            if (
                tracked.state is LeaseState.WAITING
                and tracked.task in attempts
                and self._membership.may_take(tracked.renewals_needed)
            ):
                waiting_for[tracked.task].append(tracked)
        if not self.job.is_exactly_once:
            every = [tracked for waiting in waiting_for.values() for tracked in waiting]
            self._transactional_takeover.fence_former_owners(every)
            self._lease_granter.resolve(every, now, self._lock)
        for task, attempt in attempts.items():
            waiting = waiting_for[task]
            if waiting and self.job.is_exactly_once:
                waiting = self._transactional_takeover.grantable(
                    attempt, waiting, self._partitions.values(), now
                )
            if waiting:
                self._lease_granter.grant(attempt, waiting, now, self._lock)


def _source_of(tracked: TrackedPartition) -> TopicPartition:
    return tracked.source
