"""One leased partition with everything a task knows about it: its queue, its rules, its troubles.

`Partition` is the arithmetic of what lies where. A `Course` adds what decides whether it may be
fetched and sent now: what each side waits for, since when and why, and whether it is on its way
out.

    open ──close────────▶ what was sent is acknowledged ─────────▶ out (CLOSED)
      ├────finish_with──▶ what was fetched is on the target ─────▶ out (trouble at the source)
      └────end_with─────▶ no request holds its bytes any more ───▶ out (trouble at the target)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkmirror.copy.messages import How, Standing
from sparkmirror.copy.partition import Partition
from sparkmirror.copy.sorting import Sorter
from sparkmirror.wire.backoff import Backoff

NO_END = -1


@dataclass(slots=True)
class Wait:
    """One side of a partition waits for something that may pass, longer each time."""

    why: str = ""
    until: float = 0.0
    _backoff: Backoff = field(default_factory=lambda: Backoff(longest_s=2.0))

    def begin(self, why: str, now: float) -> None:
        """Wait, because of this."""
        self.why, self.until = why, now + self._backoff.pause_s()

    def end(self) -> None:
        """Whatever it was has passed."""
        if self.why:
            self.why, self.until = "", 0.0
            self._backoff.reset()


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
    unanswered: bool = False
    """Whether nobody answered for what was sent: it waits to know whether it may come again."""
    reading: Wait = field(default_factory=Wait)
    writing: Wait = field(default_factory=Wait)
    how: How | None = None
    why: str = ""
    _finishes: bool = False
    """Whether what is queued still goes to the target before it is out."""
    key: str = field(init=False)
    """Its name on the control channel."""

    def __post_init__(self) -> None:
        self.key = str(self.partition.lease.source)

    @property
    def is_leaving(self) -> bool:
        """Whether nothing new is fetched for it."""
        return self.how is not None

    @property
    def is_sending(self) -> bool:
        """Whether what is queued may still be sent."""
        return self.how is None or self._finishes

    @property
    def is_out(self) -> bool:
        """Whether it can be given back: no request holds its bytes, nothing is left to finish."""
        if self.how is None or self.partition.requests:
            return False
        return not (self._finishes and self.partition.queue())

    def close(self) -> None:
        """Give it back as soon as what was sent is acknowledged."""
        if self.how is None:
            self.how, self._finishes = How.CLOSED, True
            self.partition.drop_unsent()

    def finish_with(self, how: How, why: str) -> None:
        """Give it back when all that was fetched is on the target: the source brings no more."""
        if self.how is None:
            self.how, self.why, self._finishes = how, why, True

    def end_with(self, how: How, why: str) -> None:
        """Give it back as soon as no request holds its bytes: nothing more can be sent.

        The first reason stands, but for one that only waited for the queue to be sent.
        """
        if self.is_sending:
            self.how, self.why, self._finishes = how, why, False

    def standing(self, trouble: str = "") -> Standing:
        """Where it stands, for the report; `trouble` is what keeps its brokers away."""
        lease = self.partition.standing
        return Standing(
            position=lease.position,
            expected=lease.expected,
            records=lease.records,
            end=self.end,
            newest_ms=self.newest_ms,
            held=self.why or trouble or self.writing.why or self.reading.why,
            epoch=self.sorter.leader_epoch,
        )
