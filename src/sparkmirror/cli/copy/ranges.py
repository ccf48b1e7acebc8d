"""The range of offsets that a copy covers in each partition.

              start_offset              end_offset
    source   ......|========================|......      records written later
    target   ......|  target_end_offset

`start_offset` is the ledger's position, or the one of `--start` if the ledger has none.
`end_offset` is read once, before anything is copied; `--until-caught-up` ends there. With
read_committed it is the last stable offset.
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
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode

T = TypeVar("T")

_LIST_OFFSETS = "ListOffsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """The range of one partition."""

    start_offset: int
    end_offset: int
    log_start_offset: int = 0
    """The first offset of the source; it deleted the offsets from `start_offset` up to this."""
    target_end_offset: int = 0
    """The end of the target partition before the copy."""
    records_before: int = 0
    """Records copied before, according to the ledger."""
    is_in_ledger: bool = False
    """Whether the ledger has a position of this partition."""

    @property
    def length(self) -> int:
        """Offsets to copy that the source still holds."""
        return max(self.end_offset - max(self.start_offset, self.log_start_offset), 0)

    @property
    def has_data_loss(self) -> bool:
        """Whether the source has deleted the next offset to copy."""
        return self.start_offset < self.log_start_offset

    @property
    def has_foreign_records(self) -> bool:
        """Whether the target partition has records and the ledger has no position."""
        return self.target_end_offset > 0 and not self.is_in_ledger


PartitionRanges = Mapping[TopicPartition, PartitionRange]


def by_topic(ranges: PartitionRanges) -> dict[str, PartitionRanges]:
    """Group by topic, sorted by name."""
    topics: dict[str, dict[TopicPartition, PartitionRange]] = {}
    for partition, partition_range in ranges.items():
        topics.setdefault(partition.topic, {})[partition] = partition_range
    return dict(sorted(topics.items()))


def topics_with_foreign_records(plan: CopyPlan, ranges: PartitionRanges) -> list[str]:
    """Return the remote topics with records that this mirror has not written."""
    return sorted(
        {
            plan.remote_partition(partition).topic
            for partition, partition_range in ranges.items()
            if partition_range.has_foreign_records
        }
    )


def fetch_ranges(
    job: CopyJob, plan: CopyPlan, descriptions: ClusterDescriptions
) -> PartitionRanges:
    """Read the offsets of every partition from both clusters."""
    clusters = ClusterQueries.create(job.settings)
    try:
        return _fetch_ranges(job, plan, descriptions, clusters)
    finally:
        clusters.close()


def _fetch_ranges(
    job: CopyJob, plan: CopyPlan, descriptions: ClusterDescriptions, clusters: ClusterQueries
) -> PartitionRanges:
    partitions = plan.partitions
    logs = _require_all(clusters.source_ranges(partitions), job.settings.source_alias)
    target_ends = _require_all(
        clusters.target_ends(_existing_remote_partitions(plan, descriptions)),
        job.settings.target_alias,
    )
    entries = _ledger_entries(job, plan, clusters)
    without_position = {p: log for p, log in logs.items() if p not in entries}
    start_offsets = {p: entry.position for p, entry in entries.items()} | _start_offsets(
        job.start, without_position, clusters
    )
    return {
        partition: PartitionRange(
            start_offset=start_offsets[partition],
            end_offset=logs[partition].end,
            log_start_offset=logs[partition].start,
            target_end_offset=target_ends.get(plan.remote_partition(partition), 0),
            records_before=_records_copied(entries.get(partition)),
            is_in_ledger=partition in entries,
        )
        for partition in partitions
    }


def _existing_remote_partitions(
    plan: CopyPlan, descriptions: ClusterDescriptions
) -> list[TopicPartition]:
    """Return the remote partitions that exist."""
    return [
        remote
        for remote in map(plan.remote_partition, plan.partitions)
        if remote.topic in descriptions.target_topics
        and remote.partition < len(descriptions.target_topics[remote.topic].partitions)
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
    start: StartPosition, logs: Mapping[TopicPartition, LogRange], clusters: ClusterQueries
) -> dict[TopicPartition, int]:
    """Return where copying starts in partitions without a position in the ledger."""
    match start.at:
        case StartMode.EARLIEST:
            return {partition: log.start for partition, log in logs.items()}
        case StartMode.LATEST:
            return {partition: log.end for partition, log in logs.items()}
        case StartMode.TIMESTAMP:
            offsets = clusters.offsets_for_time(logs, start.timestamp_ms) if logs else {}
            return {p: _offset_at_time(offsets[p], log) for p, log in logs.items()}
        case StartMode.OFFSETS:
            return {p: _offset_from_file(p, r, start.offsets) for p, r in logs.items()}


def _offset_at_time(offset: int | ErrorCode, log: LogRange) -> int:
    """Return the first offset at or after a time; the end if no record is that new."""
    return log.end if isinstance(offset, ErrorCode) or offset < 0 else offset


def _offset_from_file(partition: TopicPartition, log: LogRange, offsets: Mapping[str, int]) -> int:
    first = offsets.get(str(partition), log.start)
    if not log.start <= first <= log.end:
        raise BadRequest(
            f"--start: {partition} cannot begin at offset {first}: the source holds"
            f" {log.start} to {log.end}."
        )
    return first


def validate_start_offsets(
    start: StartPosition | None, partitions: Iterable[TopicPartition]
) -> None:
    """Raise BadRequest if `--start` has an offset of a partition that is not copied."""
    copied = {str(partition) for partition in partitions}
    unknown = sorted(set(start.offsets if start else ()) - copied)
    if unknown:
        raise BadRequest(f"--start: the file names {', '.join(unknown)}, which is not copied.")


def _require_all(
    answers: Mapping[TopicPartition, T | ErrorCode], cluster: str
) -> dict[TopicPartition, T]:
    """Return the values; raise the first error code, so that no partition is left out."""
    values: dict[TopicPartition, T] = {}
    for partition, value in answers.items():
        if isinstance(value, ErrorCode):
            raise error_for_code(cluster, _LIST_OFFSETS, value, str(partition))
        values[partition] = value
    return values
