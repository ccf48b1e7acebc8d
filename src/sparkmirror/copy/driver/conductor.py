"""The conductor: who may copy what, from where, and what to do when a lease ends.

Lives in the driver, in a thread of its own with an inbox. Tasks come, report and go (`reception`);
the conductor grants leases, remembers positions, takes partitions away from tasks that fell silent,
and before anybody else gets a partition whose lease did not end cleanly, fences it and finds out
where it stands.

    waiting ──grant──▶ leased ──clean end──▶ waiting (same identity, no fence)
       ▲                  └──anything else──▶ doubtful ──fence, reconcile──▶ waiting
       └──── after a while ──── held (a reason; all other partitions go on)

In exactly-once mode a lease belongs to the term of its task (`terms`), and what is doubtful goes on
at what was committed (`succession`).

Contract for the transport (`engine`): call `joined` when a task attempt has said Hello, `said` for
every later message, `left` when its connection is gone; deliver what is given to `send`. All of
these may be called from any thread and return at once. Answer each Report with a Beat without
asking the conductor, which may be busy. A task that was given up is sent Dismiss: it ends in an
error, and another attempt of it is wanted. When an epoch is to end, call `end_epoch`: the conductor
drains every task that is there; the attempts of the next epoch get the leases back as they were.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from sparkmirror.copy.control.messages import ControlMessage, Hello
from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.event_log import EventLog
from sparkmirror.copy.driver.fence import DriverFenced, PartitionFencer
from sparkmirror.copy.driver.lease_grants import LeaseGranter
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.pending_receipts import MissingReceipt, PendingReceipts
from sparkmirror.copy.driver.progress_publisher import ProgressPublisher
from sparkmirror.copy.driver.resume_points import ResumePointFinder
from sparkmirror.copy.driver.run_map_store import RunMapStore
from sparkmirror.copy.driver.takeover import Takeover
from sparkmirror.copy.driver.task_attempts import SendMessage, TaskAttempt
from sparkmirror.copy.driver.task_events import TaskEventHandler
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.driver.transactional_ids import TransactionalIds
from sparkmirror.copy.driver.transactional_takeover import TransactionalTakeover
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import Ledger
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

TICK_S = 0.1


class Conductor:
    """Grants leases and keeps the ledger. Use: `start()`, feed events, `drain()`, `stop()`."""

    def __init__(self, job: CopyJob, ledger: Ledger, runs: RunMapStore | None = None) -> None:
        """Without a store for runs, what was copied where is known only while this lives."""
        self._progress = ProgressPublisher.for_job(job, runs)
        self._lock = threading.Lock()
        self._events = EventLog()
        self._pending_receipts = PendingReceipts(lambda: time.time_ns() // 1_000_000)
        self._clusters = ClusterQueries.create(job.settings)
        self._transactional_ids = TransactionalIds(self._clusters.target, job)
        writes_itself = self._transactional_ids.write_entries if job.is_exactly_once else None
        self._ledger_cache = LedgerCache(ledger, self._lock, writes_itself)
        self._transactional_takeover = TransactionalTakeover(
            clusters=self._clusters,
            transactional_ids=self._transactional_ids,
            ledger_cache=self._ledger_cache,
            publish=self._events.publish,
            lock=self._lock,
        )
        fences = PartitionFencer(self._clusters.target, f"{job.group_id}-{job.connector}")
        self._resume_points = ResumePointFinder(job, self._clusters, fences)
        self._lease_granter = LeaseGranter(
            self._clusters,
            self._resume_points,
            self._ledger_cache,
            self._events,
            job.on_loss,
        )
        self._takeover = Takeover(
            clusters=self._clusters,
            fences=fences,
            publish=self._events.publish,
            lease_timeout_s=job.settings.lease_timeout_s,
        )
        self._task_events = TaskEventHandler(
            job=job,
            ledger_cache=self._ledger_cache,
            events=self._events,
            progress=self._progress,
            resume_points=self._resume_points,
            lease_granter=self._lease_granter,
            pending_receipts=self._pending_receipts,
        )
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="conductor", daemon=True)
        self._stopping = False
        self._failure: Exception | None = None
        self._flush_at = 0.0
        self._last_error = ""

    @property
    def job(self) -> CopyJob:
        """What is copied, and how, by now."""
        return self._task_events.job

    @property
    def _partitions(self) -> dict[TopicPartition, TrackedPartition]:
        return self._task_events.partitions

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: find both clusters, read the ledger, start the thread.

        Raises MirrorError, the first time within seconds; may be called again.
        """
        self._clusters.find_topics(
            {place.source.topic for place in self._partitions.values()},
            {place.target.topic for place in self._partitions.values()},
        )
        self._ledger_cache.load()
        if self.job.is_exactly_once or self._ledger_cache.has_transactional_entries:
            self._transactional_ids.fence_all()
            self._ledger_cache.load()
            if not self.job.is_exactly_once:
                self._transactional_ids.end_hanging_transactions(
                    self._ledger_cache.committed_target_ends(self._partitions.values())
                )
        self._progress.start()
        self._thread.start()

    def on_task_joined(self, hello: Hello, send: SendMessage) -> None:
        """A task attempt has come; it gets its welcome and its leases through `send`."""
        self._inbox.put(
            lambda: self._task_events.on_joined(TaskAttempt(hello, send, time.monotonic()))
        )

    def on_task_message(self, hello: Hello, message: ControlMessage) -> None:
        """A task attempt has said something (Report, Ended, Done)."""
        self._inbox.put(lambda: self._task_events.on_message(hello, message))

    def on_task_left(self, hello: Hello) -> None:
        """A task attempt is gone, however it went."""
        self._inbox.put(lambda: self._task_events.on_attempt_lost(hello, "its connection is gone"))

    def drain(self) -> None:
        """Have every task give everything back; positions are remembered as they do."""
        self._inbox.put(self._task_events.drain)

    def end_epoch(self) -> None:
        """Have the tasks that are there give everything back, for those that come after them."""
        self._inbox.put(self._task_events.end_epoch)

    def replan(self, job: CopyJob) -> None:
        """Go on with another job of the same connector, on the same clusters.

        What stays with its task is not interrupted; what another task gets is given back first.
        """
        self._inbox.put(lambda: self._task_events.replan(job))

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to so many bytes a second; 0 lifts the limit."""
        self._inbox.put(lambda: self._task_events.set_rate(bytes_per_s))

    def snapshot(self) -> CopySnapshot:
        """Where everything stands, as of the last reports. Cheap; any thread."""
        with self._lock:
            return self._task_events.snapshot()

    def runs(self, partition: TopicPartition) -> tuple[OffsetRun, ...]:
        """Which source offsets of a partition lie where on the target, as far as it is known."""
        with self._lock:
            return tuple(self._partitions[partition].runs)

    def is_drained(self) -> bool:
        """Whether `drain` was asked for and nothing is leased any more."""
        with self._lock:
            return self._task_events.is_drained

    def close_epoch(self, epoch: int, *, landed: bool) -> list[MissingReceipt]:
        """An epoch is over; returns the receipts that none of its attempts has handed in."""
        with self._lock:
            return self._pending_receipts.close_epoch(epoch, landed=landed)

    def failure(self) -> Exception | None:
        """Why the conductor has ended by itself (another driver took over, a bug), if it has."""
        return self._failure

    def stop(self) -> None:
        """End the thread and hang up; what is not flushed is flushed. The ledger is closed."""
        self._stopping = True
        if self._thread.is_alive():
            self._thread.join(timeout=30)
        self._progress.stop()
        self._clusters.close()
        self._ledger_cache.close()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._run_inbox()
                self._tick(time.monotonic())
            self._run_inbox()
            self._progress.flush(self._partitions.values())
            self._ledger_cache.flush(self._partitions.values())
        except MirrorError as error:
            log.error("The conductor stops: %s", error)
            self._failure = error
        except Exception as error:
            log.exception("The conductor stops")
            self._failure = error

    def _run_inbox(self) -> None:
        """Handle what has arrived, waiting a moment for the first."""
        try:
            step = self._inbox.get(timeout=TICK_S)
            while True:
                with self._lock:
                    step()
                step = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _tick(self, now: float) -> None:
        """Take away, settle, grant, remember. Trouble with a cluster is no reason to end."""
        try:
            with self._lock:
                self._task_events.expire_silent(now)
                for place in self._partitions.values():
                    place.end_hold_if_due(now)
            self._resolve_doubtful(now)
            self._grant_all(now)
            self._progress.restore(self._partitions)
            if self._task_events.is_draining or now >= self._flush_at:
                self._progress.flush(self._partitions.values())
                self._ledger_cache.flush(self._partitions.values())
                self._flush_at = now + self.job.flush_interval_s
            self._last_error = ""
        except DriverFenced:
            raise
        except MirrorError as error:
            if str(error) != self._last_error:
                log.warning("%s", error)
            self._last_error = str(error)

    def _resolve_doubtful(self, now: float) -> None:
        uncertain = [p for p in self._partitions.values() if p.state is LeaseState.DOUBTFUL]
        self._transactional_takeover.resolve(self._partitions.values())
        doubtful = [
            p for p in uncertain if p.state is LeaseState.DOUBTFUL and not p.is_transaction_doubtful
        ]
        if doubtful:
            self._takeover.resolve(doubtful, self._lease_granter.target_limits(doubtful), now)
            settled = [place for place in doubtful if place.state is LeaseState.WAITING]
            if self.job.is_exactly_once:
                with self._lock:
                    for place in settled:
                        place.make_transactional()
            self._ledger_cache.save(settled, is_open=False)
        with self._lock:
            for place in uncertain:
                if place.last_owner and place.state is LeaseState.WAITING:
                    self._pending_receipts.add(place.last_owner, place)  # what it had not told

    def _grant_all(self, now: float) -> None:
        if self._task_events.is_draining:
            return
        for attempt in self._task_events.attempts.active():
            mine = [
                place
                for place in self._partitions.values()
                if place.state is LeaseState.WAITING and place.task == attempt.hello.task
            ]
            if mine and self.job.is_exactly_once:
                mine = self._transactional_takeover.grantable(
                    attempt, mine, self._partitions.values(), now
                )
            if mine:
                self._lease_granter.grant(attempt, mine, now, self._lock)
