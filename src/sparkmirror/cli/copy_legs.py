"""How far each partition has to go: from where copying begins to where its source ends now.

                 first                      goal
    source   ......|========================|......      what is written from now on
    target   ......|  end: what the copy holds already

`first` is what the ledger remembers, else what `--start` says. `goal` is taken once, before
anything is copied: whoever waits until all is caught up waits for it. With read_committed it is
the last stable offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sparkmirror.cli.copy_plan import CopyPlan, Survey
from sparkmirror.copy.clusters import Clusters, Reach
from sparkmirror.copy.job import Job, Start, StartAt
from sparkmirror.copy.ledger import Entry
from sparkmirror.engine.ledger import OffsetsTopicLedger
from sparkmirror.errors import BadRequest
from sparkmirror.model import TopicPartition
from sparkmirror.store.offsets import OffsetsTopic
from sparkmirror.wire.codes import Code
from sparkmirror.wire.place import refusal

T = TypeVar("T")

_LIST_OFFSETS = "ListOffsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """The way of one partition."""

    first: int
    goal: int
    source_start: int = 0
    """Where the source begins; what lies between `first` and this was deleted before its time."""
    target_end: int = 0
    """Where the copy ended before; what we append comes behind."""
    records: int = 0
    """How many records the ledger says were copied before."""
    is_known: bool = False
    """Whether the ledger remembers this partition."""

    @property
    def length(self) -> int:
        """Offsets to copy until the goal, as far as the source still holds them."""
        return max(self.goal - max(self.first, self.source_start), 0)

    @property
    def is_lossy(self) -> bool:
        """Whether the source no longer holds what is to be copied next."""
        return self.first < self.source_start

    @property
    def meets_strangers(self) -> bool:
        """Whether the copy holds records of which the ledger knows nothing."""
        return self.target_end > 0 and not self.is_known


Legs = Mapping[TopicPartition, Leg]


def by_topic(legs: Legs) -> dict[str, Legs]:
    """Put together what belongs to one topic, in the order of names."""
    topics: dict[str, dict[TopicPartition, Leg]] = {}
    for partition, leg in legs.items():
        topics.setdefault(partition.topic, {})[partition] = leg
    return dict(sorted(topics.items()))


def strangers(plan: CopyPlan, legs: Legs) -> list[str]:
    """Copies that hold records of which this mirror knows nothing."""
    return sorted(
        {plan.remote(partition).topic for partition, leg in legs.items() if leg.meets_strangers}
    )


def measure(job: Job, plan: CopyPlan, survey: Survey) -> Legs:
    """Ask both clusters where every partition stands."""
    clusters = Clusters.dial(job.settings)
    try:
        return _measure(job, plan, survey, clusters)
    finally:
        clusters.close()


def _measure(job: Job, plan: CopyPlan, survey: Survey, clusters: Clusters) -> Legs:
    partitions = plan.partitions
    reach = _all_found(clusters.source_reach(partitions), job.settings.source_alias)
    target_ends = _all_found(
        clusters.target_ends(_existing(plan, survey)), job.settings.target_alias
    )
    entries = _entries(job, plan, clusters)
    news = {p: there for p, there in reach.items() if p not in entries}
    firsts = {p: entry.position for p, entry in entries.items()} | _firsts(
        job.start, news, clusters
    )
    return {
        partition: Leg(
            first=firsts[partition],
            goal=reach[partition].end,
            source_start=reach[partition].start,
            target_end=target_ends.get(plan.remote(partition), 0),
            records=_records(entries.get(partition)),
            is_known=partition in entries,
        )
        for partition in partitions
    }


def _existing(plan: CopyPlan, survey: Survey) -> list[TopicPartition]:
    """The remote partitions that are there already."""
    return [
        remote
        for remote in map(plan.remote, plan.partitions)
        if remote.topic in survey.target_topics
        and remote.partition < len(survey.target_topics[remote.topic].partitions)
    ]


def _entries(job: Job, plan: CopyPlan, clusters: Clusters) -> Mapping[TopicPartition, Entry]:
    if plan.offsets_topic is not None:
        return {}
    topic = OffsetsTopic(clusters.target, job.offsets_topic)
    return OffsetsTopicLedger(topic, job.connector, job.settings.source_alias).load()


def _records(entry: Entry | None) -> int:
    return entry.ours.records if entry and entry.ours else 0


def _firsts(
    start: Start, reach: Mapping[TopicPartition, Reach], clusters: Clusters
) -> dict[TopicPartition, int]:
    """Where copying begins with partitions that the ledger does not know."""
    match start.at:
        case StartAt.EARLIEST:
            return {partition: there.start for partition, there in reach.items()}
        case StartAt.LATEST:
            return {partition: there.end for partition, there in reach.items()}
        case StartAt.TIMESTAMP:
            found = clusters.offsets_at(reach, start.timestamp_ms) if reach else {}
            return {p: _at(found[p], there) for p, there in reach.items()}
        case StartAt.OFFSETS:
            return {p: _given(p, r, start.offsets) for p, r in reach.items()}


def _at(found: int | Code, there: Reach) -> int:
    """The first offset at or after a time; the end, where nothing is as young."""
    return there.end if isinstance(found, Code) or found < 0 else found


def _given(partition: TopicPartition, there: Reach, offsets: Mapping[str, int]) -> int:
    first = offsets.get(str(partition), there.start)
    if not there.start <= first <= there.end:
        raise BadRequest(
            f"--start: {partition} cannot begin at offset {first}: the source holds"
            f" {there.start} to {there.end}."
        )
    return first


def refuse_strays(start: Start | None, partitions: Iterable[TopicPartition]) -> None:
    """Offsets for what is not copied are a mistake, most likely in a name."""
    copied = {str(partition) for partition in partitions}
    strays = sorted(set(start.offsets if start else ()) - copied)
    if strays:
        raise BadRequest(f"--start: the file names {', '.join(strays)}, which is not copied.")


def _all_found(found: Mapping[TopicPartition, T | Code], cluster: str) -> dict[TopicPartition, T]:
    """Leave the codes out, or rather raise the first: no partition may be forgotten."""
    there: dict[TopicPartition, T] = {}
    for partition, value in found.items():
        if isinstance(value, Code):
            raise refusal(cluster, _LIST_OFFSETS, value, str(partition))
        there[partition] = value
    return there
