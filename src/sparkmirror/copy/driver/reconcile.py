"""Reconcile: the target's log holds more than the ledger knows, so where does the source go on?

The ledger says: everything below source offset S is what lies below target offset T. A dead owner
appended more:

    target log   .. T | own  own  (others)  own | end          n = records of ours from T on
    source log   .. S | . . . . . . . . . . . ? |              ? = the n-th to be copied from S on

Behind a fence the end cannot move. The n-th record must equal the last one of ours, or nobody can
say where the dead owner stood: then `NoMatch`. Two ways to find it:

    jump   if the sequence of our last batch proves that nothing else lies between, n is known
           without reading, and the record at S + n - 1 is compared
    walk   otherwise both logs are read: ours are counted on the target, and the source is sorted as
           a task would

A jump over gaps in the source can only end too early, never too late: it repeats records and skips
none.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.partition_queue import PartitionQueue
from sparkmirror.errors import MirrorError
from sparkmirror.wire.batch import records
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffers import BufferPool
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.single_fetch import (
    OffsetOutOfRange,
    fetch_batch_at,
    fetch_records,
    iter_complete_batches,
)

MAX_BATCHES_BACK = 1000
"""Batches of others or markers to step over while looking for our last one."""


class ReconcileMethod(enum.StrEnum):
    """How a position was found."""

    NOTHING_APPENDED = "nothing-appended"
    JUMP = "jump"
    WALK = "walk"


class ReconcileFailed(MirrorError):
    """What lies on the target cannot be found at the source: compacted or changed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledPosition:
    """Where the source goes on, how that was found, and whether others wrote in between."""

    position: int
    appended: int = 0
    method: ReconcileMethod = ReconcileMethod.NOTHING_APPENDED
    has_foreign_records: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _LastOwnBatch:
    """Our last batch on the target, and what lay behind it."""

    header: BatchHeader
    record: Record
    has_foreign_records: bool


@dataclass(slots=True, kw_only=True)
class Reconciler:
    """Finds the position of partitions whose lease did not end cleanly."""

    source: Router
    target: Router
    read_committed: bool

    def find(self, lease: Lease, end: int, rules: TargetLimits) -> ReconciledPosition:
        """Where to go on: `lease` is the last one the ledger knows, `end` the target's end."""
        last = self._last_own_batch(lease, end)
        if last is None:
            return ReconciledPosition(position=lease.position)
        if _is_contiguous(lease.identity, last.header):
            count = last.header.next_offset - lease.expected
            position = self._jump(lease, count, last.record, rules)
            if position is not None:
                return ReconciledPosition(
                    position=position,
                    appended=count,
                    method=ReconcileMethod.JUMP,
                    has_foreign_records=last.has_foreign_records,
                )
        count, foreign = self._count_own_records(lease, end)
        position = self._walk(lease, count, last.record, rules)
        return ReconciledPosition(
            position=position,
            appended=count,
            method=ReconcileMethod.WALK,
            has_foreign_records=foreign,
        )

    # -- the target ------------------------------------------------------------------------------

    def _last_own_batch(self, lease: Lease, end: int) -> _LastOwnBatch | None:
        at, foreign = end, False
        for _ in range(MAX_BATCHES_BACK):
            if at <= lease.expected:
                return None
            header, batch = fetch_batch_at(self.target, lease.target, at - 1)
            if not header.is_control:
                if header.producer_id == lease.identity.producer_id:
                    return _LastOwnBatch(
                        header=header,
                        record=records.read_records(header, batch)[-1],
                        has_foreign_records=foreign,
                    )
                foreign = True
            at = header.base_offset
        raise ReconcileFailed(
            f"{lease.target}: none of its last {MAX_BATCHES_BACK} batches is ours; somebody else"
            " writes to the remote topic"
        )

    def _count_own_records(self, lease: Lease, end: int) -> tuple[int, bool]:
        """Count our records from the ledger's place on, and see whether there are others."""
        at, count, foreign = lease.expected, 0, False
        while at < end:
            before = at
            for header, _ in iter_complete_batches(
                fetch_records(self.target, lease.target, at).records
            ):
                if at <= header.base_offset < end and not header.is_control:
                    ours = header.producer_id == lease.identity.producer_id
                    count += header.record_count if ours else 0
                    foreign = foreign or not ours
                at = max(at, header.next_offset)
            if at == before:
                raise ReconcileFailed(f"{lease.target} cannot be read from offset {at} on")
        return count, foreign

    # -- the source ------------------------------------------------------------------------------

    def _jump(self, lease: Lease, count: int, last: Record, rules: TargetLimits) -> int | None:
        """Look at the one record where the source must stand if it has no gaps."""
        guess = lease.position + count - 1
        try:
            header, batch = fetch_batch_at(self.source, lease.source, guess)
        except OffsetOutOfRange:
            return None
        if header.is_control or header.base_offset > guess:
            return None
        there = next((r for r in records.read_records(header, batch) if r.offset == guess), None)
        return guess + 1 if there and _same_record(there, last, rules) else None

    def _walk(self, lease: Lease, count: int, last: Record, rules: TargetLimits) -> int:
        """Sort the source as a task would, until as many records are met as were appended."""
        partition = PartitionQueue(_without_identity(lease))
        sorter = BatchConverter(rules, self.read_committed)
        pool, met = BufferPool(), 0
        while met < count:
            before = partition.next_fetch_offset
            glimpse = fetch_records(
                self.source, lease.source, before, read_committed=self.read_committed
            )
            frame = pool.allocate(len(glimpse.records))
            frame.view[:] = glimpse.records
            refusal = sorter.convert(partition, frame, frame.view, glimpse.aborted_transactions)
            while partition.ready and met < count:
                parcel = partition.ready.popleft()
                met += parcel.record_count
                if met >= count:
                    index = parcel.record_count - (met - count) - 1
                    there = records.read_records(parcel.header, parcel.batch)[index]
                    if not _same_record(there, last, rules):
                        raise _reconcile_failed(lease)
                    return _offset_of(parcel.spans, index) + 1
            if refusal or partition.next_fetch_offset == before:
                raise _reconcile_failed(lease)
        return partition.next_fetch_offset


def _is_contiguous(identity: LeaseIdentity, header: BatchHeader) -> bool:
    """Whether the sequence of a batch proves that all from the anchor up to it is ours."""
    same = (header.producer_id, header.producer_epoch) == (
        identity.producer_id,
        identity.producer_epoch,
    )
    return (
        same
        and header.base_offset >= identity.anchor
        and identity.sequence_for(header.base_offset) == header.base_sequence
    )


def _same_record(source: Record, target: Record, rules: TargetLimits) -> bool:
    alike = (source.key, source.value, source.headers) == (
        target.key,
        target.value,
        target.headers,
    )
    return alike and (rules.log_append_time or source.timestamp == target.timestamp)


def _offset_of(spans: tuple[tuple[int, int], ...], index: int) -> int:
    """The source offset of the record at an index of a parcel."""
    for first, length in spans:
        if index < length:
            return first + index
        index -= length
    raise IndexError(index)


def _without_identity(lease: Lease) -> Lease:
    """The same place, with an identity that is never used to send anything."""
    nobody = LeaseIdentity(producer_id=0, producer_epoch=0, anchor=lease.expected)
    return replace(lease, identity=nobody)


def _reconcile_failed(lease: Lease) -> ReconcileFailed:
    return ReconcileFailed(
        f"what lies at the end of {lease.target} cannot be found in {lease.source} after offset"
        f" {lease.position}; the source was compacted or changed meanwhile"
    )
