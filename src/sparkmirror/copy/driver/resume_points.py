"""Openings: the first lease of each partition, from what the ledger and both logs say.

    ledger             target log                what happens
    nothing            any                       begin where the job says; append at its end
    offset only        any                       somebody else wrote it: take it at its word
    ours, closed       ends where we left it     go on under the same identity, no fence
    ours, otherwise    more, less or still open  doubtful: fence and reconcile first
    in a transaction   any                       take it at its word: it was committed with the data

In exactly-once mode leases have no identity; but what was copied without transactions before is
fenced and reconciled where it is doubtful, all the same.

Does the source still hold what comes next? If the topic was recreated, its log begins after the
position, or the epoch of the last record copied ends before it, that is a loss, and the job's
policy decides. Nothing is passed over in silence. But of a
doubtful place nobody knows the position yet: whether the log still holds it is asked afterwards, by
the first fetch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sparkmirror.copy.driver.cluster_queries import ClusterQueries, LogRange
from sparkmirror.copy.driver.data_loss import DataLoss, LossKind, find_loss
from sparkmirror.copy.driver.fence import PartitionFencer
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.job import CopyJob, StartMode
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease, LeaseIdentity
from sparkmirror.copy.ledger import LedgerEntry, LedgerExtension
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH
from sparkmirror.wire.protocol.error_codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """How one place opens: with a lease, that may be doubtful, or with a loss, or not now."""

    lease: Lease | None = None
    is_doubtful: bool = False
    loss: DataLoss | None = None
    error: str = ""
    warning: str = ""
    source_end: int = -1


@dataclass(slots=True)
class ResumePointFinder:
    """Makes first leases."""

    job: CopyJob
    clusters: ClusterQueries
    fences: PartitionFencer

    def find(
        self, places: list[TrackedPartition], entries: Mapping[TopicPartition, LedgerEntry]
    ) -> dict[TrackedPartition, ResumePoint]:
        """Look at both logs, in a few requests for all places together."""
        reach = self.clusters.source_ranges([place.source for place in places])
        ends = self.clusters.target_ends([place.target for place in places])
        source_ids = self.clusters.topic_ids(
            self.clusters.source, {place.source.topic for place in places}
        )
        target_ids = self.clusters.topic_ids(
            self.clusters.target, {place.target.topic for place in places}
        )
        starts = self._start_offsets([p for p in places if p.source not in entries], reach)
        led = [place for place in places if isinstance(reach[place.source], LogRange)]
        epoch_ends = self.clusters.epoch_ends(_last_epochs(led, entries))
        opened: dict[TrackedPartition, ResumePoint] = {}
        for place in places:
            there, end = reach[place.source], ends[place.target]
            source_id = source_ids[place.source.topic]
            target_id = target_ids[place.target.topic]
            epoch_end = epoch_ends.get(place.source)
            # Whoever cannot say something now is asked again: without it a loss would go unseen.
            if isinstance(there, ErrorCode):
                opened[place] = _unavailable("source", place.source, there)
            elif isinstance(source_id, ErrorCode):
                opened[place] = _unavailable("source", place.source, source_id)
            elif isinstance(epoch_end, ErrorCode):
                opened[place] = _unavailable("source", place.source, epoch_end)
            elif isinstance(end, ErrorCode):
                opened[place] = _unavailable("target", place.target, end)
            elif isinstance(target_id, ErrorCode):
                opened[place] = _unavailable("target", place.target, target_id)
            else:
                there = replace(there, epoch_end=epoch_end)
                entry, start = entries.get(place.source), starts.get(place.source)
                opened[place] = self._find_one(
                    place, entry, start, there, end, (source_id, target_id)
                )
        return opened

    def _find_one(
        self,
        place: TrackedPartition,
        entry: LedgerEntry | None,
        start: int | None,
        there: LogRange,
        end: int,
        ids: tuple[str, str],
    ) -> ResumePoint:
        if entry is None:
            assert start is not None
            return ResumePoint(lease=self._new_lease(place, start, end, ids), source_end=there.end)
        loss = find_loss(entry, there, ids)
        is_another = loss is not None and loss.kind is LossKind.REMOTE_RECREATED
        if self._continues_transactions(entry) and entry.extension and not is_another:
            lease = _continued_lease(place, entry.position, entry.extension, ids)
            lease = replace(lease, expected=min(lease.expected, end))
            cut = truncation_warning(place, entry.extension.expected, end)
            return ResumePoint(lease=lease, loss=loss, warning=cut, source_end=there.end)
        if _is_authoritative(entry) or is_another:
            copied = entry.extension.records if entry.extension else 0
            lease = replace(self._new_lease(place, entry.position, end, ids), records=copied)
            return ResumePoint(lease=lease, loss=loss, source_end=there.end)
        assert entry.extension is not None
        lease = _continued_lease(place, entry.position, entry.extension, ids)
        doubtful = entry.extension.is_open or end != entry.extension.expected
        if doubtful and loss and loss.kind is not LossKind.RECREATED:
            loss = None
        if self.job.is_exactly_once and not doubtful:
            lease = lease.as_transactional()
        return ResumePoint(lease=lease, is_doubtful=doubtful, loss=loss, source_end=there.end)

    def _continues_transactions(self, entry: LedgerEntry) -> bool:
        was = entry.extension is not None and entry.extension.is_transactional
        return was and self.job.is_exactly_once

    def _new_lease(
        self, place: TrackedPartition, position: int, end: int, ids: tuple[str, str]
    ) -> Lease:
        """Append at the end of the target, under the identity of the partition's fence."""
        return Lease(
            source=place.source,
            target=place.target,
            position=position,
            expected=end,
            identity=self._new_identity(place, end),
            source_topic_id=ids[0],
            target_topic_id=ids[1],
        )

    def _new_identity(self, place: TrackedPartition, end: int) -> LeaseIdentity:
        if self.job.is_exactly_once:
            return TRANSACTIONAL_IDENTITY
        given = self.fences.identity_for(place.target)
        return LeaseIdentity(producer_id=given.producer_id, producer_epoch=given.epoch, anchor=end)

    def _start_offsets(
        self, places: list[TrackedPartition], reach: Mapping[TopicPartition, LogRange | ErrorCode]
    ) -> dict[TopicPartition, int]:
        """Where to begin with partitions that the ledger does not know."""
        start = self.job.start
        begin = {p.source: r for p in places if isinstance(r := reach[p.source], LogRange)}
        if start.at is StartMode.LATEST:
            return {p: r.end for p, r in begin.items()}
        if start.at is StartMode.TIMESTAMP and begin:
            found = self.clusters.offsets_for_time(begin, start.timestamp_ms)
            return {
                p: r.end if isinstance(at := found[p], ErrorCode) or at < 0 else at
                for p, r in begin.items()
            }
        if start.at is StartMode.OFFSETS:
            return {p: start.offsets.get(str(p), r.start) for p, r in begin.items()}
        return {p: r.start for p, r in begin.items()}


def _unavailable(side: str, partition: TopicPartition, code: ErrorCode) -> ResumePoint:
    return ResumePoint(error=f"{side}: {partition}: {code}")


def truncation_warning(place: TrackedPartition, expected: int, end: int) -> str:
    """What to say of a remote partition that ends before what it had acknowledged, if it does."""
    if end >= expected:
        return ""
    return (
        f"{place.target} ends at offset {end}, not at {expected}: the target has lost records that"
        " it had acknowledged; compare it with the source"
    )


def _is_authoritative(entry: LedgerEntry) -> bool:
    """Whether what the ledger says is all there is to know: somebody else's, or committed."""
    return entry.extension is None or entry.extension.is_transactional


def _last_epochs(
    places: Iterable[TrackedPartition], entries: Mapping[TopicPartition, LedgerEntry]
) -> dict[TopicPartition, int]:
    """Of which leader epoch the last record copied was, where that is remembered."""
    known = {place.source: entries[place.source] for place in places if place.source in entries}
    return {
        partition: entry.extension.source_epoch
        for partition, entry in known.items()
        if entry.extension and entry.extension.source_epoch != NO_EPOCH
    }


def _continued_lease(
    place: TrackedPartition, position: int, ours: LedgerExtension, ids: tuple[str, str]
) -> Lease:
    return Lease(
        source=place.source,
        target=place.target,
        position=position,
        expected=ours.expected,
        identity=ours.identity,
        records=ours.records,
        source_topic_id=ids[0],
        target_topic_id=ids[1],
        last_epoch=(ours.source_epoch, position),
    )
