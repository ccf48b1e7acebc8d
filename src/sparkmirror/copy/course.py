"""One leased partition with everything a task knows about it: its queue, its rules, its troubles.

`Partition` is the arithmetic of what lies where. A `Course` adds what decides whether it may be
fetched and sent now: who it waits for, since when and why, and whether it is on its way out.

    open ──closing──▶ drains what was sent ──▶ ended(CLOSED)
      └──ending(how)─▶ waits until no request holds its bytes ──▶ ended(how)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkmirror.copy.messages import How, Standing
from sparkmirror.copy.partition import Partition
from sparkmirror.copy.sorting import Sorter

FIRST_BACK_OFF_S = 0.05
LONGEST_BACK_OFF_S = 2.0
NO_END = -1


@dataclass(slots=True, eq=False)
class Course:
    """The course of one partition from lease to end."""

    partition: Partition
    sorter: Sorter
    end: int = NO_END
    """Where the source's log ends, as far as may be read; -1 until it was fetched once."""
    newest_ms: int = -1
    """Largest timestamp acknowledged."""
    read_replica: int | None = None
    """The broker the source would rather have us read from (its rack is ours)."""
    settling: bool = False
    """Whether the broker doubts a sequence: what it has already must be found out first."""
    held: str = ""
    not_before: float = 0.0
    how: How | None = None
    why: str = ""
    _back_off_s: float = field(default=0.0)

    @property
    def key(self) -> str:
        """Its name on the control channel."""
        return str(self.partition.lease.source)

    @property
    def is_leaving(self) -> bool:
        """Whether nothing new is fetched for it."""
        return self.how is not None

    @property
    def is_out(self) -> bool:
        """Whether it can be given back: no request holds its bytes, nothing sent is open."""
        if self.how is None or self.partition.requests:
            return False
        return self.how is not How.CLOSED or not (self.partition.flying or self.partition.ready)

    def close(self) -> None:
        """Give it back as soon as what was sent is acknowledged."""
        if self.how is None:
            self.how = How.CLOSED
            self.partition.drop_unsent()

    def end_with(self, how: How, why: str) -> None:
        """Give it back as soon as no request holds its bytes. The first reason stands."""
        if self.how is None or self.how is How.CLOSED:
            self.how, self.why = how, why

    def hold(self, why: str, now: float) -> None:
        """Wait a while, longer each time, because of something that may pass."""
        self._back_off_s = min(max(self._back_off_s * 2, FIRST_BACK_OFF_S), LONGEST_BACK_OFF_S)
        self.held, self.not_before = why, now + self._back_off_s

    def go_on(self) -> None:
        """Whatever it waited for has passed."""
        if self.held:
            self.held, self.not_before, self._back_off_s = "", 0.0, 0.0

    def standing(self) -> Standing:
        """Where it stands, for the report."""
        return Standing(
            position=self.partition.position,
            expected=self.partition.expected,
            end=self.end,
            newest_ms=self.newest_ms,
            held=self.why or self.held,
        )
