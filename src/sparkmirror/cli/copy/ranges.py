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

from sparkmirror.cli.copy.plan import ClusterDescriptions, CopyPlan
from sparkmirror.copy.driver.cluster_queries import ClusterQueries, LogRange
from sparkmirror.copy.job import CopyJob, StartMode, StartPosition
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.errors import BadRequest
from sparkmirror.model import TopicPartition
from sparkmirror.store.offsets_topic import OffsetsTopic
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.response_errors import error_for_code

T = TypeVar("T")

_LIST_OFFSETS = "ListOffsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """The way of one partition."""

    start_offset: int
    end_offset: int
    log_start_offset: int = 0
    """Where the source begins; what lies between `first` and this was deleted before its time."""
    target_end_offset: int = 0
    """Where the copy ended before; what we append comes behind."""
    records_before: int = 0
    """How many records the ledger says were copied before."""
    is_in_ledger: bool = False
    """Whether the ledger remembers this partition."""

    @property
    def length(self) -> int:
        """Offsets to copy until the goal, as far as the source still holds them."""
        return max(self.end_offset - max(self.start_offset, self.log_start_offset), 0)

    @property
    def has_data_loss(self) -> bool:
        """Whether the source no longer holds what is to be copied next."""
        return self.start_offset < self.log_start_offset

    @property
    def has_foreign_records(self) -> bool:
        """Whether the copy holds records of which the ledger knows nothing."""
        return self.target_end_offset > 0 and not self.is_in_ledger


PartitionRanges = Mapping[TopicPartition, PartitionRange]


def by_topic(legs: PartitionRanges) -> dict[str, PartitionRanges]:
    """Put together what belongs to one topic, in the order of names."""
    topics: dict[str, dict[TopicPartition, PartitionRange]] = {}
    for partition, leg in legs.items():
        topics.setdefault(partition.topic, {})[partition] = leg
    return dict(sorted(topics.items()))


def topics_with_foreign_records(plan: CopyPlan, legs: PartitionRanges) -> list[str]:
    """Copies that hold records of which this mirror knows nothing."""
    return sorted(
        {
            plan.remote_partition(partition).topic
            for partition, leg in legs.items()
            if leg.has_foreign_records
        }
    )


def fetch_ranges(job: CopyJob, plan: CopyPlan, survey: ClusterDescriptions) -> PartitionRanges:
    """Ask both clusters where every partition stands."""
    clusters = ClusterQueries.create(job.settings)
    try:
        return _fetch_ranges(job, plan, survey, clusters)
    finally:
        clusters.close()


def _fetch_ranges(
    job: CopyJob, plan: CopyPlan, survey: ClusterDescriptions, clusters: ClusterQueries
) -> PartitionRanges:
    partitions = plan.partitions
    reach = _require_all(clusters.source_ranges(partitions), job.settings.source_alias)
    target_ends = _require_all(
        clusters.target_ends(_existing_remote_partitions(plan, survey)), job.settings.target_alias
    )
    entries = _ledger_entries(job, plan, clusters)
    news = {p: there for p, there in reach.items() if p not in entries}
    firsts = {p: entry.position for p, entry in entries.items()} | _start_offsets(
        job.start, news, clusters
    )
    return {
        partition: PartitionRange(
            start_offset=firsts[partition],
            end_offset=reach[partition].end,
            log_start_offset=reach[partition].start,
            target_end_offset=target_ends.get(plan.remote_partition(partition), 0),
            records_before=_records_copied(entries.get(partition)),
            is_in_ledger=partition in entries,
        )
        for partition in partitions
    }


def _existing_remote_partitions(
    plan: CopyPlan, survey: ClusterDescriptions
) -> list[TopicPartition]:
    """The remote partitions that are there already."""
    return [
        remote
        for remote in map(plan.remote_partition, plan.partitions)
        if remote.topic in survey.target_topics
        and remote.partition < len(survey.target_topics[remote.topic].partitions)
    ]


def _ledger_entries(
    job: CopyJob, plan: CopyPlan, clusters: ClusterQueries
) -> Mapping[TopicPartition, LedgerEntry]:
    if plan.offsets_topic is not None:
        return {}
    topic = OffsetsTopic(clusters.target, job.offsets_topic)
    return OffsetsTopicLedger(topic, job.connector, job.settings.source_alias).load()


def _records_copied(entry: LedgerEntry | None) -> int:
    return entry.extension.records if entry and entry.extension else 0


def _start_offsets(
    start: StartPosition, reach: Mapping[TopicPartition, LogRange], clusters: ClusterQueries
) -> dict[TopicPartition, int]:
    """Where copying begins with partitions that the ledger does not know."""
    match start.at:
        case StartMode.EARLIEST:
            return {partition: there.start for partition, there in reach.items()}
        case StartMode.LATEST:
            return {partition: there.end for partition, there in reach.items()}
        case StartMode.TIMESTAMP:
            found = clusters.offsets_for_time(reach, start.timestamp_ms) if reach else {}
            return {p: _offset_at_time(found[p], there) for p, there in reach.items()}
        case StartMode.OFFSETS:
            return {p: _offset_from_file(p, r, start.offsets) for p, r in reach.items()}


def _offset_at_time(found: int | ErrorCode, there: LogRange) -> int:
    """The first offset at or after a time; the end, where nothing is as young."""
    return there.end if isinstance(found, ErrorCode) or found < 0 else found


def _offset_from_file(
    partition: TopicPartition, there: LogRange, offsets: Mapping[str, int]
) -> int:
    first = offsets.get(str(partition), there.start)
    if not there.start <= first <= there.end:
        raise BadRequest(
            f"--start: {partition} cannot begin at offset {first}: the source holds"
            f" {there.start} to {there.end}."
        )
    return first


def validate_start_offsets(
    start: StartPosition | None, partitions: Iterable[TopicPartition]
) -> None:
    """Offsets for what is not copied are a mistake, most likely in a name."""
    copied = {str(partition) for partition in partitions}
    strays = sorted(set(start.offsets if start else ()) - copied)
    if strays:
        raise BadRequest(f"--start: the file names {', '.join(strays)}, which is not copied.")


def _require_all(
    found: Mapping[TopicPartition, T | ErrorCode], cluster: str
) -> dict[TopicPartition, T]:
    """Leave the codes out, or rather raise the first: no partition may be forgotten."""
    there: dict[TopicPartition, T] = {}
    for partition, value in found.items():
        if isinstance(value, ErrorCode):
            raise error_for_code(cluster, _LIST_OFFSETS, value, str(partition))
        there[partition] = value
    return there
