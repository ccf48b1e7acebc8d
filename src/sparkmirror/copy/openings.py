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

from sparkmirror.copy.clusters import Clusters, Reach
from sparkmirror.copy.fence import Fences
from sparkmirror.copy.job import Job, StartAt
from sparkmirror.copy.lease import IN_TRANSACTIONS, Identity, Lease
from sparkmirror.copy.ledger import Entry, Ours
from sparkmirror.copy.losses import Kind, Loss, find_loss
from sparkmirror.copy.place import Place
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.header import NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How one place opens: with a lease, that may be doubtful, or with a loss, or not now."""

    lease: Lease | None = None
    is_doubtful: bool = False
    loss: Loss | None = None
    trouble: str = ""
    warning: str = ""
    end: int = -1


@dataclass(slots=True)
class Openings:
    """Makes first leases."""

    job: Job
    clusters: Clusters
    fences: Fences

    def open(
        self, places: list[Place], entries: Mapping[TopicPartition, Entry]
    ) -> dict[Place, Opening]:
        """Look at both logs, in a few requests for all places together."""
        reach = self.clusters.source_reach([place.source for place in places])
        ends = self.clusters.target_ends([place.target for place in places])
        source_ids = self.clusters.topic_ids(
            self.clusters.source, {place.source.topic for place in places}
        )
        target_ids = self.clusters.topic_ids(
            self.clusters.target, {place.target.topic for place in places}
        )
        starts = self._starts([p for p in places if p.source not in entries], reach)
        led = [place for place in places if isinstance(reach[place.source], Reach)]
        epoch_ends = self.clusters.epoch_ends(_epochs(led, entries))
        opened: dict[Place, Opening] = {}
        for place in places:
            there, end = reach[place.source], ends[place.target]
            source_id = source_ids[place.source.topic]
            target_id = target_ids[place.target.topic]
            epoch_end = epoch_ends.get(place.source)
            # Whoever cannot say something now is asked again: without it a loss would go unseen.
            if isinstance(there, Code):
                opened[place] = _not_now("source", place.source, there)
            elif isinstance(source_id, Code):
                opened[place] = _not_now("source", place.source, source_id)
            elif isinstance(epoch_end, Code):
                opened[place] = _not_now("source", place.source, epoch_end)
            elif isinstance(end, Code):
                opened[place] = _not_now("target", place.target, end)
            elif isinstance(target_id, Code):
                opened[place] = _not_now("target", place.target, target_id)
            else:
                there = replace(there, epoch_end=epoch_end)
                entry, start = entries.get(place.source), starts.get(place.source)
                opened[place] = self._open(place, entry, start, there, end, (source_id, target_id))
        return opened

    def _open(
        self,
        place: Place,
        entry: Entry | None,
        start: int | None,
        there: Reach,
        end: int,
        ids: tuple[str, str],
    ) -> Opening:
        if entry is None:
            assert start is not None
            return Opening(lease=self._fresh(place, start, end, ids), end=there.end)
        loss = find_loss(entry, there, ids)
        is_another = loss is not None and loss.kind is Kind.REMOTE_RECREATED
        if self._goes_on_in_transactions(entry) and entry.ours and not is_another:
            lease = _continued(place, entry.position, entry.ours, ids)
            lease = replace(lease, expected=min(lease.expected, end))
            cut = truncation(place, entry.ours.expected, end)
            return Opening(lease=lease, loss=loss, warning=cut, end=there.end)
        if _is_exact(entry) or is_another:
            copied = entry.ours.records if entry.ours else 0
            lease = replace(self._fresh(place, entry.position, end, ids), records=copied)
            return Opening(lease=lease, loss=loss, end=there.end)
        assert entry.ours is not None
        lease = _continued(place, entry.position, entry.ours, ids)
        doubtful = entry.ours.is_open or end != entry.ours.expected
        if doubtful and loss and loss.kind is not Kind.RECREATED:
            loss = None
        if self.job.is_exactly_once and not doubtful:
            lease = lease.in_transactions()
        return Opening(lease=lease, is_doubtful=doubtful, loss=loss, end=there.end)

    def _goes_on_in_transactions(self, entry: Entry) -> bool:
        was = entry.ours is not None and entry.ours.is_transactional
        return was and self.job.is_exactly_once

    def _fresh(self, place: Place, position: int, end: int, ids: tuple[str, str]) -> Lease:
        """Append at the end of the target, under the identity of the partition's fence."""
        return Lease(
            source=place.source,
            target=place.target,
            position=position,
            expected=end,
            identity=self._fresh_identity(place, end),
            source_topic_id=ids[0],
            target_topic_id=ids[1],
        )

    def _fresh_identity(self, place: Place, end: int) -> Identity:
        if self.job.is_exactly_once:
            return IN_TRANSACTIONS
        given = self.fences.identity_for(place.target)
        return Identity(producer_id=given.producer_id, producer_epoch=given.epoch, anchor=end)

    def _starts(
        self, places: list[Place], reach: Mapping[TopicPartition, Reach | Code]
    ) -> dict[TopicPartition, int]:
        """Where to begin with partitions that the ledger does not know."""
        start = self.job.start
        begin = {p.source: r for p in places if isinstance(r := reach[p.source], Reach)}
        if start.at is StartAt.LATEST:
            return {p: r.end for p, r in begin.items()}
        if start.at is StartAt.TIMESTAMP and begin:
            found = self.clusters.offsets_at(begin, start.timestamp_ms)
            return {
                p: r.end if isinstance(at := found[p], Code) or at < 0 else at
                for p, r in begin.items()
            }
        if start.at is StartAt.OFFSETS:
            return {p: start.offsets.get(str(p), r.start) for p, r in begin.items()}
        return {p: r.start for p, r in begin.items()}


def _not_now(side: str, partition: TopicPartition, code: Code) -> Opening:
    return Opening(trouble=f"{side}: {partition}: {code}")


def truncation(place: Place, expected: int, end: int) -> str:
    """What to say of a remote partition that ends before what it had acknowledged, if it does."""
    if end >= expected:
        return ""
    return (
        f"{place.target} ends at offset {end}, not at {expected}: the target has lost records that"
        " it had acknowledged; compare it with the source"
    )


def _is_exact(entry: Entry) -> bool:
    """Whether what the ledger says is all there is to know: somebody else's, or committed."""
    return entry.ours is None or entry.ours.is_transactional


def _epochs(
    places: Iterable[Place], entries: Mapping[TopicPartition, Entry]
) -> dict[TopicPartition, int]:
    """Of which leader epoch the last record copied was, where that is remembered."""
    known = {place.source: entries[place.source] for place in places if place.source in entries}
    return {
        partition: entry.ours.source_epoch
        for partition, entry in known.items()
        if entry.ours and entry.ours.source_epoch != NO_EPOCH
    }


def _continued(place: Place, position: int, ours: Ours, ids: tuple[str, str]) -> Lease:
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
