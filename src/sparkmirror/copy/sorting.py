"""Sorting: what a fetch brought for one partition becomes parcels, in source order.

Each batch is verified, takes the cheapest lane that is correct for it (`wire.lane`) and joins the
partition's queue; what must not be copied only moves the position. The first thing that cannot be
copied ends the sorting: everything before it is queued, nothing after it is looked at, and the
reason is returned.

Knows no socket. Holds the frame once for every parcel whose bytes lie in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.partition import Partition
from sparkmirror.errors import BatchError
from sparkmirror.wire import legacy
from sparkmirror.wire.aborted import AbortedFilter, AbortedTransaction
from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.checksum import verify
from sparkmirror.wire.header import MAGIC, NO_EPOCH, Header, Span, batches, read_header
from sparkmirror.wire.lane import Lane, Reason, choose
from sparkmirror.wire.reopen import Oversized, reopen
from sparkmirror.wire.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that cannot be copied: where it lies at the source, and why."""

    offset: int
    why: str


@dataclass(slots=True)
class Sorter:
    """Sorts what is fetched for one partition. `lanes` counts batches by the reason of a lane."""

    target: Target
    read_committed: bool = True
    lanes: Counter[Reason] = field(default_factory=Counter)
    leader_epoch: int = NO_EPOCH
    """Epoch of the last batch seen, by which the source notices that its log was truncated."""

    def take_lanes(self) -> Counter[Reason]:
        """The counts since they were last taken."""
        taken, self.lanes = self.lanes, Counter()
        return taken

    def sort(
        self,
        partition: Partition,
        frame: Frame,
        records: memoryview,
        aborted: Sequence[AbortedTransaction],
    ) -> Refusal | None:
        """Queue what can be copied, in order; say what stopped it, if anything did."""
        filter_ = AbortedFilter(aborted if self.read_committed else ())
        old: list[Span] = []
        try:
            for span in batches(records):
                if span.magic < MAGIC:
                    old.append(span)
                    continue
                self._upgrade(partition, records, old)
                batch = records[span.start : span.end]
                refusal = self._sort_one(partition, frame, batch, filter_)
                if refusal:
                    return refusal
            self._upgrade(partition, records, old)
        except BatchError as error:
            return Refusal(offset=partition.fetched, why=str(error))
        return None

    def _sort_one(
        self, partition: Partition, frame: Frame, batch: memoryview, filter_: AbortedFilter
    ) -> Refusal | None:
        header = read_header(batch)
        self.leader_epoch = header.leader_epoch
        reason = choose(header, partition.fetched, filter_.is_aborted(header, batch), self.target)
        self.lanes[reason] += 1
        if reason.lane is Lane.FORWARD:
            verify(header, batch)
            frame.hold()
            spans = ((header.base_offset, header.record_count),)
            self._queue(partition, header, batch, spans, header.next_offset, frame.release)
        elif reason.lane is Lane.REOPEN:
            return self._reopen(partition, header, batch)
        elif header.next_offset > partition.fetched:
            partition.passed(header.next_offset)
        return None

    def _reopen(self, partition: Partition, header: Header, batch: memoryview) -> Refusal | None:
        for piece in reopen(header, batch, partition.fetched, self.target):
            if isinstance(piece, Oversized):
                return Refusal(offset=piece.source_offset, why=_too_large(piece))
            first, length = piece.runs[-1]
            spans = tuple((run.source_first, run.length) for run in piece.runs)
            body = memoryview(piece.batch)
            self._queue(partition, read_header(body), body, spans, first + length, _nothing)
        if header.next_offset > partition.fetched:
            partition.passed(header.next_offset)
        return None

    def _upgrade(self, partition: Partition, records: memoryview, old: list[Span]) -> None:
        """Turn messages from before record batches into one batch, and sort that."""
        if not old:
            return
        batch = memoryview(legacy.upgrade([records[span.start : span.end] for span in old]))
        self.lanes[Reason.LEGACY] += len(old)
        old.clear()
        header = read_header(batch)
        if header.next_offset > partition.fetched:
            refusal = self._reopen(partition, header, batch)
            if refusal:
                raise BatchError(refusal.why)

    @staticmethod
    def _queue(
        partition: Partition,
        header: Header,
        batch: memoryview,
        spans: tuple[tuple[int, int], ...],
        source_next: int,
        release: Callable[[], None],
    ) -> None:
        partition.arrived(
            Parcel(
                header=header,
                batch=batch,
                spans=spans,
                source_next=source_next,
                release=release,
            )
        )


def _nothing() -> None:
    """A reopened piece has memory of its own: there is no frame to let go of."""


def _too_large(record: Oversized) -> str:
    return (
        f"the record at offset {record.source_offset} needs {record.size} bytes, more than the"
        f" {record.limit} that the remote topic allows; raise its max.message.bytes"
    )
