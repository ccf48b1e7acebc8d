"""Reconcile: the target log holds more than the ledger knows; find where the source resumes.

The ledger says: everything below source offset S is what lies below target offset T. A dead owner
appended more:

    target log   .. T | own  own  (foreign)  own | end         n = own records from T on
    source log   .. S | . . . . . . . . . . . . ? |            ? = the n-th record to copy from S on

Behind a fence the end cannot move. The n-th record must equal the last own record; otherwise the
position of the dead owner is unknown: `ReconcileFailed`. Two methods:

    jump     if the sequence of the last own batch proves that only own records lie before it, n is
             known without reading, and the record at S + n - 1 is compared
    walk     otherwise both logs are read: own records are counted on the target, and source batches
             are converted as a task converts them

Records of a connector with transformations are walked, never jumped to: dropped ones leave gaps,
and changed ones may be equal. The walk needs the transformations of the dead owner. If the config
has others now, and something was appended, the position is unknown.

A jump over gaps in the source can only end too early, never too late: it repeats records and skips
none.

Without a producer id no record is known to be own, and a request of a lost connection may have been
appended twice. A third method then reads both logs (`log_comparison`):

    compare  source records from S on are found on the target, from T on, one after the other. The
             source resumes behind the last one found. Target records that are not the next one are
             repetitions, or of another program

Every source record before that position has a target record of its own, in order: none is skipped.

Own: written under the producer id of the lease. `Reconciler` reads logs through a `LogReader`;
everything else here is pure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sparkmirror.copy.driver.fencing.log_comparison import (
    copied_records,
    extend_runs,
    has_same_content,
)
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch import records
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import (
    OffsetOutOfRange,
    SingleFetchResult,
    fetch_batch_at,
    fetch_records,
    iter_complete_batches,
)

MAX_BATCHES_BACK = 1000
"""How many foreign batches and markers are skipped in search of the last own batch."""


class ReconcileMethod(enum.StrEnum):
    """How the position was found."""

    NOTHING_APPENDED = "nothing-appended"
    JUMP = "jump"
    WALK = "walk"
    COMPARE = "compare"


class ReconcileFailed(MirrorError):
    """The end of the target log has no match at the source: it was compacted or changed."""


class LogReader(Protocol):
    """Reads partition logs of one cluster."""

    def batch_at(self, partition: TopicPartition, offset: int) -> tuple[BatchHeader, bytes]:
        """Return the batch that holds an offset. Raises OffsetOutOfRange."""
        ...

    def fetch(
        self, partition: TopicPartition, offset: int, *, read_committed: bool = False
    ) -> SingleFetchResult:
        """Return what one fetch from an offset on brings."""
        ...


@dataclass(frozen=True, slots=True)
class RouterLogReader:
    """Reads through a router. Blocks."""

    router: Router

    def batch_at(self, partition: TopicPartition, offset: int) -> tuple[BatchHeader, bytes]:
        """Fetch the batch that holds an offset."""
        return fetch_batch_at(self.router, partition, offset)

    def fetch(
        self, partition: TopicPartition, offset: int, *, read_committed: bool = False
    ) -> SingleFetchResult:
        """Fetch once."""
        return fetch_records(self.router, partition, offset, read_committed=read_committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledPosition:
    """Where the source resumes, how that was found, and whether foreign records were found."""

    position: int
    appended: int = 0
    method: ReconcileMethod = ReconcileMethod.NOTHING_APPENDED
    has_foreign_records: bool = False
    runs: tuple[OffsetRun, ...] = ()
    """What was appended, if the target offset of every record is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LastOwnBatch:
    """The last own batch on the target, and whether foreign records follow it."""

    header: BatchHeader
    record: Record
    has_foreign_records: bool


@dataclass(slots=True, kw_only=True)
class Reconciler:
    """Finds the position of partitions whose lease did not end cleanly."""

    source: LogReader
    target: LogReader
    read_committed: bool
    converters: ConverterFactory = ConverterFactory()
    policy_topics: Mapping[str, str] = field(default_factory=dict)
    """The names of remote topics before a route, by source topic."""

    def find(self, lease: Lease, end: int, limits: TargetLimits) -> ReconciledPosition:
        """Return where to resume: `lease` is the ledger's, `end` the end of the target log.

        A marker at the end may be left out of `end`: it is no batch of an owner.

        Raises ReconcileFailed, OffsetOutOfRange, BatchError for a batch that cannot be read, or
        what a cluster raises.
        """
        if not lease.is_idempotent:
            return self._compare(lease, end, limits)
        last = self._last_own_batch(lease, end)
        if last is None:
            return ReconciledPosition(position=lease.position)
        if lease.chain:
            return self._walk_transformed(lease, end, last, limits)
        if is_contiguous(lease.identity, last.header):
            count = last.header.next_offset - lease.expected
            position = self._jump(lease, count, last.record, limits)
            if position is not None:
                return ReconciledPosition(
                    position=position,
                    appended=count,
                    method=ReconcileMethod.JUMP,
                    has_foreign_records=last.has_foreign_records,
                )
        count, has_foreign_records = self._count_own_records(lease, end)
        position, _ = self._walk(lease, count, last.record, limits)
        return ReconciledPosition(
            position=position,
            appended=count,
            method=ReconcileMethod.WALK,
            has_foreign_records=has_foreign_records,
        )

    def _walk_transformed(
        self, lease: Lease, end: int, last: _LastOwnBatch, limits: TargetLimits
    ) -> ReconciledPosition:
        """Walk through the transformations; target offsets are known if all records are own."""
        self._require_same_chain(lease)
        is_unbroken = is_contiguous(lease.identity, last.header)
        if is_unbroken:
            count = last.header.next_offset - lease.expected
            has_foreign_records = last.has_foreign_records
        else:
            count, has_foreign_records = self._count_own_records(lease, end)
        position, runs = self._walk(lease, count, last.record, limits)
        return ReconciledPosition(
            position=position,
            appended=count,
            method=ReconcileMethod.WALK,
            has_foreign_records=has_foreign_records,
            runs=tuple(runs) if is_unbroken else (),
        )

    def _require_same_chain(self, lease: Lease) -> None:
        """Raise ReconcileFailed if the owner had transformations that the config has no more."""
        if lease.chain and lease.chain != self.converters.chain:
            raise ReconcileFailed(
                f"the transforms of the connector were changed before the last owner of"
                f" {lease.target} had returned it, so what it appended cannot be found in"
                f" {lease.source}"
            )

    def _compare(self, lease: Lease, end: int, limits: TargetLimits) -> ReconciledPosition:
        """Compare both logs from the ledger's offsets on; for leases without a producer id."""
        runs: list[OffsetRun] = []
        position, appended = lease.position, 0
        if end > lease.expected:
            self._require_same_chain(lease)
            matches = copied_records(
                self._source_records(lease, limits), self._target_records(lease, end, limits)
            )
            for source_offset, target_offset in matches:
                position, appended = source_offset + 1, appended + 1
                extend_runs(runs, source_offset, target_offset)
        return ReconciledPosition(
            position=position,
            appended=appended,
            method=ReconcileMethod.COMPARE,
            runs=tuple(runs),
        )

    # -- the target ------------------------------------------------------------------------------

    def _last_own_batch(self, lease: Lease, end: int) -> _LastOwnBatch | None:
        offset, has_foreign_records = end, False
        for _ in range(MAX_BATCHES_BACK):
            if offset <= lease.expected:
                return None
            header, batch = self.target.batch_at(lease.target, offset - 1)
            if not header.is_control:
                if header.producer_id == lease.identity.producer_id:
                    return _LastOwnBatch(
                        header=header,
                        record=records.read_records(header, batch)[-1],
                        has_foreign_records=has_foreign_records,
                    )
                has_foreign_records = True
            offset = header.base_offset
        raise ReconcileFailed(
            f"{lease.target}: this mirror wrote none of the last {MAX_BATCHES_BACK} batches;"
            " another producer writes to the remote topic"
        )

    def _count_own_records(self, lease: Lease, end: int) -> tuple[int, bool]:
        """Count own records from the ledger's target offset on; whether there are foreign ones."""
        offset, count, has_foreign_records = lease.expected, 0, False
        while offset < end:
            before = offset
            fetched = self.target.fetch(lease.target, offset).records
            for header, _ in iter_complete_batches(fetched):
                if offset <= header.base_offset < end and not header.is_control:
                    is_own = header.producer_id == lease.identity.producer_id
                    count += header.record_count if is_own else 0
                    has_foreign_records = has_foreign_records or not is_own
                offset = max(offset, header.next_offset)
            if offset == before:
                raise ReconcileFailed(f"{lease.target} cannot be read from offset {offset} on")
        return count, has_foreign_records

    def _target_records(
        self, lease: Lease, end: int, limits: TargetLimits
    ) -> Iterator[tuple[Record, bool]]:
        """Yield the records from the ledger's offset on, and whether their timestamps count."""
        offset = lease.expected
        while offset < end:
            before = offset
            fetched = self.target.fetch(lease.target, offset).records
            for header, batch in iter_complete_batches(fetched):
                if not header.is_control and header.next_offset > offset:
                    is_timed = not (limits.log_append_time or header.is_log_append_time)
                    for record in records.read_records(header, batch):
                        if offset <= record.offset < end:
                            yield record, is_timed
                offset = max(offset, header.next_offset)
            if offset == before:
                raise ReconcileFailed(f"{lease.target} cannot be read from offset {offset} on")

    # -- the source ------------------------------------------------------------------------------

    def _jump(self, lease: Lease, count: int, last: Record, limits: TargetLimits) -> int | None:
        """Compare the record at which the source must stand if it has no gaps."""
        offset = lease.position + count - 1
        try:
            header, batch = self.source.batch_at(lease.source, offset)
        except OffsetOutOfRange:
            return None
        if header.is_control or header.base_offset > offset:
            return None
        stored = records.read_records(header, batch)
        record = next((one for one in stored if one.offset == offset), None)
        return offset + 1 if record and same_record(record, last, limits) else None

    def _walk(
        self, lease: Lease, count: int, last: Record, limits: TargetLimits
    ) -> tuple[int, list[OffsetRun]]:
        """Convert source batches as a task does, up to as many records as were appended.

        Returns the position, and the offsets of the records if only own ones were appended.
        """
        if count == 0:
            return lease.position, []
        converted = 0
        runs: list[OffsetRun] = []
        for pending in self._source_batches(lease, limits):
            before = converted
            for first, length in pending.spans:
                taken = min(length, count - converted)
                if taken:
                    runs.append(OffsetRun(first, lease.expected + converted, taken))
                    converted += taken
            if converted == count:
                sent = records.read_records(pending.header, pending.batch)
                if not same_record(sent[count - before - 1], last, limits):
                    raise _reconcile_failed(lease)
                return runs[-1].source_first + runs[-1].length, runs
        raise _reconcile_failed(lease)

    def _source_batches(self, lease: Lease, limits: TargetLimits) -> Iterator[PendingBatch]:
        """Yield what a task would send, from the ledger's position to the end of the source."""
        queue = PartitionQueue(_without_identity(lease))
        converter = self._new_converter(lease, limits)
        pool = BufferPool()
        while True:
            before = queue.next_fetch_offset
            fetched = self.source.fetch(lease.source, before, read_committed=self.read_committed)
            frame = pool.allocate(len(fetched.records))
            frame.view[:] = fetched.records
            refusal = converter.convert(queue, frame, frame.view, fetched.aborted_transactions)
            while queue.ready:
                yield queue.ready.popleft()
            if refusal or queue.next_fetch_offset == before:
                return

    def _new_converter(self, lease: Lease, limits: TargetLimits) -> BatchConverter:
        """Return a converter like that of the owner, who may have had no transformations."""
        if lease.chain:
            return self.converters.new_converter(lease, limits, self.policy_topics)
        return self.converters.new_plain_converter(lease, limits)

    def _source_records(self, lease: Lease, limits: TargetLimits) -> Iterator[Record]:
        """Yield the records that a task would send, with their source offsets."""
        for pending in self._source_batches(lease, limits):
            sent = records.read_records(pending.header, pending.batch)
            for record, offset in zip(sent, source_offsets(pending.spans), strict=True):
                yield record._replace(offset=offset)


def is_contiguous(identity: LeaseIdentity, header: BatchHeader) -> bool:
    """Whether the sequence of a batch proves that everything from the anchor to it is own."""
    same = (header.producer_id, header.producer_epoch) == (
        identity.producer_id,
        identity.producer_epoch,
    )
    return (
        same
        and header.base_offset >= identity.anchor
        and identity.sequence_for(header.base_offset) == header.base_sequence
    )


def same_record(source: Record, target: Record, limits: TargetLimits) -> bool:
    """Whether a target record is the copy of a source record.

    A topic with LogAppendTime replaces the timestamp.
    """
    return has_same_content(source, target) and (
        limits.log_append_time or source.timestamp == target.timestamp
    )


def source_offsets(spans: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield the source offset of each record of a pending batch."""
    for first, length in spans:
        yield from range(first, first + length)


def _without_identity(lease: Lease) -> Lease:
    """The lease with an identity that is never used to send."""
    unused = LeaseIdentity(producer_id=0, producer_epoch=0, anchor=lease.expected)
    return replace(lease, identity=unused)


def _reconcile_failed(lease: Lease) -> ReconcileFailed:
    return ReconcileFailed(
        f"the end of {lease.target} has no match in {lease.source} after offset"
        f" {lease.position}; the source was compacted or changed meanwhile"
    )
