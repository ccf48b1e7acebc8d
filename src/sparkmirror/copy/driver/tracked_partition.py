"""One source partition as the conductor tracks it: its state, its lease, its owner.

waiting   a task attempt can get it: the lease says where copying resumes, unless
          `needs_resume_point` is set
leased    a task attempt copies it
doubtful  its last owner disappeared: fence and reconcile before the next grant
held      nothing happens until `held_until`; `reason` is shown to the operator
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace

from sparkmirror.backoff import Backoff
from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.control.messages import Hello, LeaseProgress
from sparkmirror.copy.lease import NO_TASK, Lease
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.receipt import Receipt
from sparkmirror.copy.record_ages import ReportedAges
from sparkmirror.copy.snapshot import PartitionView
from sparkmirror.errors import RunMapConflict
from sparkmirror.mirror.offsets.run_map_segments import SegmentedRunMap
from sparkmirror.model import TopicPartition

NEVER = float("inf")
UNKNOWN_END = -1
MAX_END_AGE_S = 5.0
"""After so long without an owner that reports, the end of the source's log may have moved."""
RETRY_REASON_S = 5.0
"""How long the reason of a hold is shown after it, unless the next owner gets further sooner."""


class LeaseState(enum.StrEnum):
    """The state of a tracked partition."""

    WAITING = "waiting"
    LEASED = "leased"
    DOUBTFUL = "doubtful"
    HELD = "held"


@dataclass(slots=True, eq=False)
class TrackedPartition:
    """The conductor's view of one source partition."""

    source: TopicPartition
    target: TopicPartition
    task: int
    state: LeaseState = LeaseState.WAITING
    lease: Lease | None = None
    owner: Hello | None = None
    end_offset: int = UNKNOWN_END
    """The end of the source's log; -1 while it is unknown."""
    last_known_end: int = UNKNOWN_END
    """The last end that was known, also while it is unknown now; -1 before the first."""
    bytes: int = 0
    """Bytes copied since the driver started, from reports of tasks."""
    copied: int = 0
    """Records copied since the driver started, from reports of tasks."""
    suppressed: int = 0
    """Records that were not sent again since the driver started: the target had them already."""
    filtered: int = 0
    """Records that transformations have dropped since the driver started."""
    skipped: int = 0
    """Records that failed in a transformation since the driver started, and are not copied."""
    failures: FailureCounts = FailureCounts()
    """What tasks logged and wrote about such records since the driver started."""
    active: int = 0
    """Records that its owner has fetched, and the target has not acknowledged."""
    queued_bytes: int = 0
    """Their bytes."""
    newest_ms: int = -1
    """The largest timestamp that the target has acknowledged; -1 while it is unknown."""
    ages: ReportedAges = field(default_factory=ReportedAges)
    reason: str = ""
    held_until: float = 0.0
    runs: SegmentedRunMap = field(default_factory=SegmentedRunMap)
    needs_resume_point: bool = True
    """Whether the conductor must query both logs before it can grant a lease."""
    is_dirty: bool = False
    """Whether the lease has changed since the ledger was written."""
    is_repositioned: bool = False
    """Whether `seek` moved the position: the end of the target log then says nothing about it."""
    doubtful_since: float = 0.0
    is_given_back: bool = False
    """Whether its last owner has returned the lease, and so writes nothing more."""
    waiting_since: float = 0.0
    """When it lost its last owner, or when both logs were last queried."""
    may_have_hanging_transaction: bool = True
    """Whether a transaction may hang in the remote partition (exactly-once mode)."""
    last_owner: Hello | None = None
    last_task: int = NO_TASK
    """The task that had the last lease; `task` may be another one by now."""
    renewals_needed: int = 0
    """How often the worker's membership must be renewed before this conductor takes it again:
    another conductor took it, and this one may not be its owner any more."""
    needs_run_map: bool = False
    """Whether the stored run map must be read: another conductor may have extended it."""
    drops_stored_runs: bool = False
    """Whether the stored run map is about a remote topic with another name."""
    wanted_topic: str = ""
    """The topic that must exist before its next record can be copied (`routed_topics`)."""
    fenced_entry: LedgerEntry | None = None
    """The entry, written in a transaction, whose task was fenced for the next resume point."""
    last_event_text: str = ""
    """The text of the last event since the position last changed."""
    _receipt_base: tuple[Lease, int] | None = None
    """The lease and the bytes up to which receipts account for what was copied."""
    _state_after_hold: LeaseState = LeaseState.WAITING
    _hold_reason: str = ""
    """The reason of the last hold, until an owner gets further than that."""
    _backoff: Backoff = field(default_factory=lambda: Backoff(initial_s=0.2, max_s=10.0))
    _copying_values: tuple[object, ...] = field(default=(), init=False)
    """The values of which `_copying_view` was made."""
    _copying_view: PartitionView | None = field(default=None, init=False)
    """The last view of a partition that was copied without a reason not to be."""

    @property
    def is_planned(self) -> bool:
        """Whether the job contains it."""
        return self.task != NO_TASK

    @property
    def writing_task(self) -> int:
        """The task whose conductor id writes its entry in exactly-once mode."""
        return self.task if self.is_planned else max(self.last_task, 0)

    @property
    def is_transactional(self) -> bool:
        """Whether it is copied in transactions."""
        return self.lease is not None and self.lease.is_transactional

    @property
    def is_transaction_doubtful(self) -> bool:
        """Whether it is unknown if the last transaction was committed."""
        return self.state is LeaseState.DOUBTFUL and self.is_transactional

    @property
    def is_new(self) -> bool:
        """Whether it waits for its first lease: until then its view does not change with time."""
        return self.state is LeaseState.WAITING and self.lease is None and self.last_owner is None

    @property
    def is_halted(self) -> bool:
        """Whether it is held until the operator decides."""
        return self.state is LeaseState.HELD and self.held_until == NEVER

    def grant_to(self, owner: Hello) -> None:
        """Make a task attempt the owner. Requires a lease and the state WAITING."""
        assert self.lease is not None
        assert self.state is LeaseState.WAITING
        self.state, self.owner, self.last_task = LeaseState.LEASED, owner, owner.task
        self.last_owner = owner
        self._receipt_base = (self.lease, self.bytes)
        self.is_repositioned = False  # from now on the target log shows how far the owner came

    def advance_to(self, position: int, expected: int, records: int) -> None:
        """Move the lease to what its owner reported."""
        assert self.lease is not None
        if (position, expected) != (self.lease.position, self.lease.expected):
            self.copied += records - self.lease.records
            self.lease = self.lease.advanced_to(position, expected, records)
            self.is_dirty, self.last_event_text = True, ""
            self._end_retries()

    def on_progress(self, progress: LeaseProgress) -> None:
        """Apply a progress report of its owner."""
        self.advance_to(progress.position, progress.expected, progress.records)
        if self.lease and self.lease.source_epoch != progress.leader_epoch:
            self.lease = self.lease.with_source_epoch(progress.leader_epoch)
        self.show_progress(progress)
        if self.lease and self.lease.position >= progress.end_offset > UNKNOWN_END:
            self._end_retries()

    def show_progress(self, progress: LeaseProgress) -> None:
        """Apply only what operators see of a report of its owner: the end and the reason."""
        self.set_end(progress.end_offset)
        self.active, self.queued_bytes = progress.active, progress.queued_bytes
        self.newest_ms = max(self.newest_ms, progress.max_timestamp_ms)
        self.reason = progress.held_reason

    def set_end(self, end_offset: int) -> None:
        """Set the end of the source's log; -1 if it is unknown now."""
        self.end_offset = end_offset
        if end_offset != UNKNOWN_END:
            self.last_known_end = end_offset

    def add_run(self, source_first: int, target_first: int, length: int) -> None:
        """Add a run to the map. A run that contradicts the map starts a new map."""
        try:
            self.runs.append(source_first, target_first, length)
        except RunMapConflict:
            self.runs.reset()
            self.runs.append(source_first, target_first, length)

    def pop_receipt(self) -> Receipt | None:
        """Return a receipt of what was copied since the last one; None if no record was copied.

        The records lie between the offsets of the receipt; gaps and markers may lie there too.
        """
        if self._receipt_base is None or self.lease is None:
            return None
        before, size = self._receipt_base
        self._receipt_base = (self.lease, self.bytes)
        if self.lease.records <= before.records:
            return None
        return Receipt(
            source=self.source,
            target=self.target,
            source_first=before.position,
            source_last=self.lease.position - 1,
            target_first=before.expected,
            target_last=self.lease.expected - 1,
            records=self.lease.records - before.records,
            bytes=self.bytes - size,
        )

    def release(self, *, clean: bool, now: float, is_given_back: bool = False) -> None:
        """Take it from its owner: WAITING after a clean end, else DOUBTFUL.

        A clean end makes it dirty: the ledger must store that the entry is closed.
        """
        self.is_given_back = is_given_back
        self.owner, self.active, self.queued_bytes = None, 0, 0
        self.state = LeaseState.WAITING if clean else LeaseState.DOUBTFUL
        self.is_dirty = self.is_dirty or clean
        self.may_have_hanging_transaction = self.may_have_hanging_transaction or not clean
        self.doubtful_since = self.waiting_since = now

    def wait_for(self, reason: str, now: float, seconds: float) -> None:
        """Hold it for a given time; then it is waiting."""
        self.wait_until(now + seconds, reason, then=LeaseState.WAITING)
        self._end_retries()

    def wait_until(self, moment: float, reason: str, *, then: LeaseState) -> None:
        """Hold it until a moment that is known: no failure, so its backoff does not grow."""
        self.state, self.owner, self.reason, self._state_after_hold = (
            LeaseState.HELD,
            None,
            reason,
            then,
        )
        self.held_until = moment

    def hold(self, reason: str, now: float, *, then: LeaseState, forever: bool = False) -> None:
        """Hold it for the backoff time, or `forever`; then it gets the state `then`."""
        moment = NEVER if forever else now + self._backoff.next_delay_s()
        self.wait_until(moment, reason, then=then)
        self._hold_reason = "" if forever else reason

    def end_hold_if_due(self, now: float) -> None:
        """End a hold whose time has passed."""
        if self.state is LeaseState.HELD and now >= self.held_until:
            self.state = self._state_after_hold

    def end_halt(self) -> None:
        """Compare it with both logs again: the operator has decided about the loss."""
        assert self.is_halted
        self.state, self.held_until, self.needs_resume_point = LeaseState.WAITING, 0.0, True

    def give_up(self, renewals_needed: int) -> None:
        """Require a new resume point: another conductor has taken it, rightly or not.

        If the worker is still the owner after so many renewals of its membership, it takes it back.
        """
        self.state, self.owner, self.fenced_entry = LeaseState.WAITING, None, None
        self.needs_resume_point, self.renewals_needed = True, renewals_needed

    def set_lease(self, lease: Lease) -> None:
        """Set the lease that the next owner gets; the state becomes WAITING."""
        self.lease, self.state, self.owner = lease, LeaseState.WAITING, None
        self.fenced_entry = None  # a later owner may copy in transactions
        self.is_dirty, self.is_repositioned, self.needs_resume_point = True, False, False

    def continue_after(self, lease: Lease) -> None:
        """Set the lease after a takeover; the records that it found on the target count."""
        assert self.lease is not None
        self.suppressed += max(lease.records - self.lease.records, 0)
        self.set_lease(lease)

    def set_grantor(self, conductor: str, task: int) -> None:
        """Set which conductor grants the lease to which task, if several share the connector."""
        assert self.lease is not None
        if conductor:
            self.lease = replace(self.lease, conductor=conductor, task=task)

    def set_chain(self, chain: str) -> None:
        """Set the fingerprint of the transformations of the next owner."""
        assert self.lease is not None
        if self.lease.chain != chain:
            self.lease = replace(self.lease, chain=chain)
            self.is_dirty = True

    def make_transactional(self) -> None:
        """Replace the identity of the lease: from now on the task commits in transactions."""
        assert self.lease is not None
        self.lease = self.lease.as_transactional()

    def seek(self, position: int) -> None:
        """Move the source position, and drop the run map."""
        assert self.lease is not None
        self.lease = replace(self.lease, position=position)
        self.runs.reset()
        self.is_dirty = self.is_repositioned = True

    def _end_retries(self) -> None:
        """Forget the last hold: its cause is gone."""
        self._hold_reason = ""
        self._backoff.reset()

    def shown_reason(self, now: float) -> str:
        """Return why it is not copied.

        An owner that has just got it does not know yet what the last one met: the reason of the
        hold stands until the owner gets further, reports another one, or has had time for both.
        """
        is_retried = self.state is LeaseState.LEASED and now - self.held_until <= RETRY_REASON_S
        return self.reason or (self._hold_reason if is_retried else "")

    def known_end(self, now: float, *, is_owner_silent: bool = False) -> int:
        """Return the end of the source's log, or -1 if it may have moved unnoticed.

        A lag above 0 stays as it is, because it is at least so large. A lag of 0 is shown only
        while a task reports it, and for `MAX_END_AGE_S` after its last report.
        """
        if self.lease is None or self.lease.position < self.end_offset:
            return self.end_offset
        if self.state is LeaseState.LEASED:
            return UNKNOWN_END if is_owner_silent else self.end_offset
        is_recent = now - self.waiting_since <= MAX_END_AGE_S
        is_known = is_recent and self.state is LeaseState.WAITING
        return self.end_offset if is_known else UNKNOWN_END

    def view(
        self, now: float, *, is_owner_silent: bool = False, default_reason: str = ""
    ) -> PartitionView:
        """Return its part of the snapshot; `default_reason` stands for a missing reason.

        While it is doubtful it stands first: its own reason is how the last lease ended. While it
        is copied and nothing has changed, the view is the same object each time.
        """
        has_reason = self.reason or self._hold_reason or default_reason
        if self.state is not LeaseState.LEASED or has_reason or is_owner_silent:
            return self._new_view(now, is_owner_silent, default_reason)
        # Nothing else is in the view of such a partition, and time does not change it.
        values = (
            self.lease,
            self.task,
            self.end_offset,
            self.bytes,
            self.copied,
            self.suppressed,
            self.filtered,
            self.skipped,
            self.failures,
            self.active,
            self.queued_bytes,
            self.newest_ms,
            self.ages.summarize(),
        )
        if self._copying_view is None or values != self._copying_values:
            self._copying_values = values
            self._copying_view = self._new_view(now, is_owner_silent, default_reason)
        return self._copying_view

    def _new_view(self, now: float, is_owner_silent: bool, default_reason: str) -> PartitionView:
        reasons = [self.shown_reason(now), default_reason]
        if self.state is LeaseState.DOUBTFUL:
            reasons.reverse()
        return PartitionView(
            remote=self.target.topic,
            task=self.task,
            state=self.state.value,
            position=self.lease.position if self.lease else -1,
            expected=self.lease.expected if self.lease else -1,
            end=self.known_end(now, is_owner_silent=is_owner_silent),
            records=self.lease.records if self.lease else 0,
            bytes=self.bytes,
            copied=self.copied,
            suppressed=self.suppressed,
            filtered=self.filtered,
            skipped=self.skipped,
            failures=self.failures,
            active=self.active,
            queued_bytes=self.queued_bytes,
            newest_ms=self.newest_ms,
            ages=self.ages.summarize(),
            reason=next(filter(None, reasons), ""),
            halted=self.is_halted,
            delivery=self.lease.delivery.value if self.lease else "",
        )
