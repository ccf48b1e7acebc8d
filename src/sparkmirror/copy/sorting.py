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
from sparkmirror.wire.merge import Small, belongs, fits, is_small, merge, merged_size
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
    _small: list[Small] = field(default_factory=list)
    """Small batches side by side, not queued yet; empty between two calls of `sort`."""
    _small_bytes: int = 0

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
                    self._merge_small(partition, frame)
                    old.append(span)
                    continue
                self._upgrade(partition, records, old)
                batch = records[span.start : span.end]
                refusal = self._sort_one(partition, frame, batch, filter_)
                if refusal:
                    return refusal
            self._merge_small(partition, frame)
            self._upgrade(partition, records, old)
        except BatchError as error:
            self._merge_small(partition, frame)
            return Refusal(offset=partition.fetched, why=str(error))
        return None

    def _sort_one(
        self, partition: Partition, frame: Frame, batch: memoryview, filter_: AbortedFilter
    ) -> Refusal | None:
        header = read_header(batch)
        self.leader_epoch = header.leader_epoch
        reason = choose(header, partition.fetched, filter_.is_aborted(header, batch), self.target)
        if reason is Reason.PLAIN and is_small(header):
            verify(header, batch)
            self._gather(partition, frame, Small(header, batch))
            return None
        self._merge_small(partition, frame)
        self.lanes[reason] += 1
        if reason.lane is Lane.FORWARD:
            verify(header, batch)
            self._forward(partition, frame, header, batch)
        elif reason.lane is Lane.REOPEN:
            return self._reopen(partition, header, batch)
        elif header.next_offset > partition.fetched:
            partition.passed(header.next_offset)
        return None

    def _forward(
        self, partition: Partition, frame: Frame, header: Header, batch: memoryview
    ) -> None:
        frame.hold()
        spans = ((header.base_offset, header.record_count),)
        self._queue(partition, header, batch, spans, header.next_offset, frame.release)

    def _gather(self, partition: Partition, frame: Frame, small: Small) -> None:
        """Keep a small batch until its neighbours are known."""
        header = small.header
        if self._small and not (
            belongs(self._small[-1].header, header)
            and fits(self._small_bytes, header, self.target.max_message_bytes)
        ):
            self._merge_small(partition, frame)
        self._small.append(small)
        self._small_bytes += merged_size(header)

    def _merge_small(self, partition: Partition, frame: Frame) -> None:
        """Queue what was gathered, as one batch if it is several."""
        small, self._small, self._small_bytes = self._small, [], 0
        if not small:
            return
        try:
            merged = memoryview(merge(small)) if len(small) > 1 else None
        except BatchError:
            merged = None  # its checksum is right, so it is passed on as it came, like larger ones
        if merged is None:
            self.lanes[Reason.PLAIN] += len(small)
            for header, batch in small:
                self._forward(partition, frame, header, batch)
            return
        self.lanes[Reason.MERGED] += len(small)
        first, last = small[0].header, small[-1].header
        header = read_header(merged)
        spans = ((first.base_offset, header.record_count),)
        self._queue(partition, header, merged, spans, last.next_offset, _nothing)

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
