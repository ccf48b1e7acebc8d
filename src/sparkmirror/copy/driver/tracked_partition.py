"""One source partition in the conductor's book: who has it, where it stands, what it waits for.

waiting   ready to be granted: its lease says where to go on, unless it must be opened first
leased    a task attempt copies it
doubtful  its last owner went without a word: fence and reconcile before the next one
held      nothing is done about it until `not_before`; the reason is told to the operator
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace

from sparkmirror.backoff import Backoff
from sparkmirror.copy.control.messages import Hello, LeaseProgress
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.receipt import Receipt
from sparkmirror.copy.snapshot import PartitionView
from sparkmirror.errors import RunMapConflict
from sparkmirror.mirror.offsets.run_map_segments import SegmentedRunMap
from sparkmirror.model import TopicPartition

NEVER = float("inf")
NO_TASK = -1
"""The task of a place that the plan does not hold any more."""


class LeaseState(enum.StrEnum):
    """What a place waits for."""

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
    end_offset: int = -1
    bytes: int = 0
    """Copied, as told by whoever had it."""
    reason: str = ""
    held_until: float = 0.0
    runs: SegmentedRunMap = field(default_factory=SegmentedRunMap)
    needs_resume_point: bool = True
    """Whether both logs must be looked at before it can be granted."""
    is_dirty: bool = False
    """Whether the ledger does not know yet where it stands."""
    is_repositioned: bool = False
    """Whether it goes on at a place of the source that what lies on the target says nothing of."""
    doubtful_since: float = 0.0
    may_have_hanging_transaction: bool = True
    """Whether a transaction may hang in its remote partition (exactly-once mode)."""
    last_owner: Hello | None = None
    last_task: int = NO_TASK
    """The task that had it last, whosever it is now."""
    last_event_text: str = ""
    """What was told of it last, without any progress since."""
    _receipt_base: tuple[Lease, int] | None = None
    """How far receipts account for it, and for how many bytes, since it was granted."""
    _state_after_hold: LeaseState = LeaseState.WAITING
    _backoff: Backoff = field(default_factory=lambda: Backoff(initial_s=0.2, max_s=10.0))

    @property
    def is_planned(self) -> bool:
        """Whether the plan holds it."""
        return self.task != NO_TASK

    @property
    def is_transactional(self) -> bool:
        """Whether it is copied in transactions."""
        return self.lease is not None and self.lease.is_transactional

    @property
    def is_transaction_doubtful(self) -> bool:
        """Whether its last transaction may not count, so that nobody knows where it stands."""
        return self.is_transactional and self.state is LeaseState.DOUBTFUL

    def grant_to(self, owner: Hello) -> None:
        """A task attempt has it now."""
        assert self.lease is not None
        assert self.state is LeaseState.WAITING
        self.state, self.owner, self.last_task = LeaseState.LEASED, owner, owner.task
        self.last_owner = owner
        self._receipt_base = (self.lease, self.bytes)
        self.is_repositioned = False  # what is appended from now on is what the lease says

    def advance_to(self, position: int, expected: int, records: int) -> None:
        """What its owner reported."""
        assert self.lease is not None
        if (position, expected) != (self.lease.position, self.lease.expected):
            self.lease = self.lease.advanced_to(position, expected, records)
            self.is_dirty, self.last_event_text = True, ""

    def on_progress(self, standing: LeaseProgress) -> None:
        """Take in a report."""
        self.advance_to(standing.position, standing.expected, standing.records)
        if self.lease and self.lease.source_epoch != standing.leader_epoch:
            self.lease = self.lease.with_source_epoch(standing.leader_epoch)
        self.end_offset, self.reason = standing.end_offset, standing.held_reason
        if not standing.held_reason:
            self._backoff.reset()

    def add_run(self, source_first: int, target_first: int, length: int) -> None:
        """Add to the exact map. What contradicts it starts a new one: never a wrong answer."""
        try:
            self.runs.append(source_first, target_first, length)
        except RunMapConflict:
            self.runs.reset()
            self.runs.append(source_first, target_first, length)

    def pop_receipt(self) -> Receipt | None:
        """A receipt of what was copied since the last one, if anything was.

        Its offsets are those between which it lies: gaps and markers may lie there, too.
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

    def release(self, *, clean: bool, now: float) -> None:
        """Its owner has it no longer; that it is closed is news for the ledger too."""
        self.owner = None
        self.state = LeaseState.WAITING if clean else LeaseState.DOUBTFUL
        self.is_dirty = self.is_dirty or clean
        self.may_have_hanging_transaction = self.may_have_hanging_transaction or not clean
        self.doubtful_since = now

    def hold(self, reason: str, now: float, *, then: LeaseState, forever: bool = False) -> None:
        """Do nothing for a while, longer each time, and tell why until there is progress."""
        self.state, self.owner, self.reason, self._state_after_hold = (
            LeaseState.HELD,
            None,
            reason,
            then,
        )
        self.held_until = NEVER if forever else now + self._backoff.next_delay_s()

    @property
    def is_halted(self) -> bool:
        """Whether it waits for somebody to decide, however long that takes."""
        return self.state is LeaseState.HELD and self.held_until == NEVER

    def end_hold_if_due(self, now: float) -> None:
        """A held place goes on when its time has come."""
        if self.state is LeaseState.HELD and now >= self.held_until:
            self.state = self._state_after_hold

    def set_lease(self, lease: Lease) -> None:
        """It is known where it stands: the next owner gets this lease."""
        self.lease, self.state, self.owner = lease, LeaseState.WAITING, None
        self.is_dirty, self.is_repositioned, self.needs_resume_point = True, False, False

    def make_transactional(self) -> None:
        """What is copied from now on is committed by the task."""
        assert self.lease is not None
        self.lease = self.lease.as_transactional()

    def seek(self, position: int) -> None:
        """Go on somewhere else at the source; what was known of the way there is void."""
        assert self.lease is not None
        self.lease = replace(self.lease, position=position)
        self.runs.reset()
        self.is_dirty = self.is_repositioned = True

    def view(self) -> PartitionView:
        """For the snapshot."""
        return PartitionView(
            remote=self.target.topic,
            task=self.task,
            state=self.state.value,
            position=self.lease.position if self.lease else -1,
            expected=self.lease.expected if self.lease else -1,
            end=self.end_offset,
            records=self.lease.records if self.lease else 0,
            bytes=self.bytes,
            reason=self.reason,
            halted=self.is_halted,
        )
