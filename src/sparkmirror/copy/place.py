"""One source partition in the conductor's book: who has it, where it stands, what it waits for.

waiting   ready to be granted: its lease says where to go on, unless it must be opened first
leased    a task attempt copies it
doubtful  its last owner went without a word: fence and reconcile before the next one
held      nothing is done about it until `not_before`; the reason is told to the operator
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace

from sparkmirror.copy.lease import Lease
from sparkmirror.copy.messages import Hello, Standing
from sparkmirror.copy.snapshot import PartitionView
from sparkmirror.errors import RunConflict
from sparkmirror.mirror.runs import RunMap
from sparkmirror.model import TopicPartition
from sparkmirror.wire.backoff import Backoff

NEVER = float("inf")
MOST_RUNS = 100_000


class State(enum.StrEnum):
    """What a place waits for."""

    WAITING = "waiting"
    LEASED = "leased"
    DOUBTFUL = "doubtful"
    HELD = "held"


@dataclass(slots=True, eq=False)
class Place:
    """The conductor's view of one source partition."""

    source: TopicPartition
    target: TopicPartition
    task: int
    state: State = State.WAITING
    lease: Lease | None = None
    owner: Hello | None = None
    end: int = -1
    reason: str = ""
    not_before: float = 0.0
    runs: RunMap = field(default_factory=RunMap)
    is_unopened: bool = True
    """Whether both logs must be looked at before it can be granted."""
    is_dirty: bool = False
    """Whether the ledger does not know yet where it stands."""
    is_elsewhere: bool = False
    """Whether it goes on at a place of the source that what lies on the target says nothing of."""
    doubtful_since: float = 0.0
    told: str = ""
    """What was told of it last, without any progress since."""
    _then: State = State.WAITING
    _backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.2, longest_s=10.0))

    def grant_to(self, owner: Hello) -> None:
        """A task attempt has it now."""
        assert self.lease is not None
        assert self.state is State.WAITING
        self.state, self.owner = State.LEASED, owner

    def moved(self, position: int, expected: int) -> None:
        """What its owner reported."""
        assert self.lease is not None
        if (position, expected) != (self.lease.position, self.lease.expected):
            self.lease = self.lease.moved(position, expected)
            self.is_dirty, self.told = True, ""

    def stands(self, standing: Standing) -> None:
        """Take in a report."""
        self.moved(standing.position, standing.expected)
        self.end, self.reason = standing.end, standing.held
        if not standing.held:
            self._backoff.reset()

    def copied(self, source_first: int, target_first: int, length: int) -> None:
        """Add to the exact map. What contradicts it starts a new one: never a wrong answer."""
        try:
            self.runs.append(source_first, target_first, length)
        except RunConflict:
            self.runs.reset()
            self.runs.append(source_first, target_first, length)
        if len(self.runs) > MOST_RUNS:
            self.runs.bound(MOST_RUNS // 2)

    def is_free(self, *, clean: bool, now: float) -> None:
        """Its owner has it no longer; that it is closed is news for the ledger too."""
        self.owner = None
        self.state = State.WAITING if clean else State.DOUBTFUL
        self.is_dirty = self.is_dirty or clean
        self.doubtful_since = now

    def hold(self, reason: str, now: float, *, then: State, forever: bool = False) -> None:
        """Do nothing for a while, longer each time, and tell why until there is progress."""
        self.state, self.owner, self.reason, self._then = State.HELD, None, reason, then
        self.not_before = NEVER if forever else now + self._backoff.pause_s()

    def wake(self, now: float) -> None:
        """A held place goes on when its time has come."""
        if self.state is State.HELD and now >= self.not_before:
            self.state = self._then

    def settled(self, lease: Lease) -> None:
        """It is known where it stands: the next owner gets this lease."""
        self.lease, self.state, self.owner = lease, State.WAITING, None
        self.is_dirty, self.is_elsewhere, self.is_unopened = True, False, False

    def relocated(self, position: int) -> None:
        """Go on somewhere else at the source; what was known of the way there is void."""
        assert self.lease is not None
        self.lease = replace(self.lease, position=position)
        self.runs.reset()
        self.is_dirty = self.is_elsewhere = True

    def view(self) -> PartitionView:
        """For the snapshot."""
        return PartitionView(
            remote=self.target.topic,
            task=self.task,
            state=self.state.value,
            position=self.lease.position if self.lease else -1,
            expected=self.lease.expected if self.lease else -1,
            end=self.end,
            reason=self.reason,
        )
