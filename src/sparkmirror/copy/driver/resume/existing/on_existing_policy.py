"""Existing records: what to do with a remote partition that holds records without a position.

The connector has no position of the partition: another connector copied it before, its offsets
topic is gone, or other programs wrote the records. `sparkmirror.on.existing` decides:

    policy   finding                                         copying starts        event
    append   not searched                                    where the job says    existing-records
    halt     not searched                                    held                  existing-records
    adopt    the last copied record is found at the source   behind that record    adopted
    adopt    the source begins after the last remote record  at the source's start adopted
    adopt    the source has that time, not the records       where the job says    foreign-records
    adopt    several source records are equal to the last    held                  existing-records
    adopt    neither: compacted, too large, later than the   held                  existing-records
             source's end
    adopt    not searched: the connector has transforms      held                  existing-records
    any      the remote partition holds markers only         where the job says    none

An open transaction at the end of the remote partition holds it until the transaction ends. A held
partition is decided by the operator: the reason names the key and the choices.

Copies lie in the remote partition in the order of the source. So behind the last copied record
nothing is at the target, and nothing before it is missing. Records of other producers may lie
between and after the copies (IdentityReplicationPolicy): what counts is the last record that the
source has.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.resume.existing.position_search import Finding, SearchResult
from sparkmirror.copy.job import ExistingRecordsPolicy
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

ON_EXISTING: Final = "sparkmirror.on.existing"
ADOPTED: Final = "adopted"
FOREIGN_RECORDS: Final = "foreign-records"
EXISTING_RECORDS: Final = "existing-records"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingPartition:
    """A source partition without a position, whose remote partition holds records."""

    source: TopicPartition
    target: TopicPartition
    source_range: LogRange
    target_range: LogRange
    start: int
    """The position where the job's start says."""

    @property
    def holds(self) -> str:
        """What the remote partition holds, for events."""
        first, last = self.target_range.start, self.target_range.high_watermark - 1
        return f"the connector has no position, and {self.target} holds offsets {first} to {last}"

    @property
    def has_open_transaction(self) -> bool:
        """Whether records at the end of the remote partition are not committed yet."""
        return self.target_range.end < self.target_range.high_watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingDecision:
    """Where copying starts, and the event; without a position the partition is held."""

    position: int | None
    kind: str = ""
    text: str = ""
    copied: OffsetRun | None = None
    """The last copied record: its source offset and its remote offset."""


def needs_search(policy: ExistingRecordsPolicy, *, has_transforms: bool = False) -> bool:
    """Whether the policy depends on what the remote partition holds."""
    return policy is ExistingRecordsPolicy.ADOPT and not has_transforms


def decide_without_search(
    partition: ExistingPartition, policy: ExistingRecordsPolicy
) -> ExistingDecision:
    """Apply `append` or `halt`; or `adopt` to records that transforms have changed or dropped."""
    if policy is ExistingRecordsPolicy.ADOPT:
        return _held(
            partition,
            "the connector's transforms change or drop records, so the last of them cannot be"
            " searched at the source",
        )
    if policy is ExistingRecordsPolicy.APPEND:
        return ExistingDecision(
            position=partition.start,
            kind=EXISTING_RECORDS,
            text=f"{partition.holds}; {ON_EXISTING}=append: copying starts at source offset"
            f" {partition.start}, and records that are there already come twice",
        )
    return _held(partition, f"{ON_EXISTING}=halt", may_adopt=True)


def decide_found(partition: ExistingPartition, found: SearchResult) -> ExistingDecision:
    """Apply `adopt` to what the search has found."""
    match found.finding:
        case Finding.NO_RECORDS:
            return ExistingDecision(position=partition.start)
        case Finding.FOUND:
            return _adopted(partition, found)
        case Finding.SOURCE_LATER:
            start = partition.source_range.start
            return ExistingDecision(
                position=start,
                kind=ADOPTED,
                text=f"{partition.holds}; the record at remote offset {found.target_offset} is"
                f" older than all that {partition.source} holds: copying starts at source offset"
                f" {start}; records that the source has deleted before it may be missing",
            )
        case Finding.FOREIGN:
            return ExistingDecision(
                position=partition.start,
                kind=FOREIGN_RECORDS,
                text=f"{partition.holds}, which {partition.source} does not hold: another program"
                f" wrote them; copying starts at source offset {partition.start} and appends"
                " behind them",
            )
        case Finding.AMBIGUOUS:
            return _held(
                partition,
                f"the record at remote offset {found.target_offset} equals several records of"
                f" {partition.source}, such as those at offsets {found.source_offset} and"
                f" {found.other_source_offset}",
            )
        case Finding.UNKNOWN:
            return _held(
                partition,
                f"the source cannot tell whether the record at remote offset"
                f" {found.target_offset} came from {partition.source}",
            )


def _adopted(partition: ExistingPartition, found: SearchResult) -> ExistingDecision:
    position = found.source_offset + 1
    following = ""
    if found.following:
        following = (
            f"; {found.following} records follow it in the remote partition that"
            f" {partition.source} does not hold"
        )
    return ExistingDecision(
        position=position,
        kind=ADOPTED,
        copied=OffsetRun(found.source_offset, found.target_offset, 1),
        text=f"{partition.holds}; source offset {found.source_offset} is remote offset"
        f" {found.target_offset}{following}; copying goes on at source offset {position}",
    )


def _held(partition: ExistingPartition, cause: str, *, may_adopt: bool = False) -> ExistingDecision:
    choices = f"append copies from source offset {partition.start} on and puts the records behind"
    if may_adopt:
        choices = f"adopt searches the last of them at the source and goes on behind it, {choices}"
    return ExistingDecision(
        position=None,
        kind=EXISTING_RECORDS,
        text=f"{partition.holds}; {cause}; copying stops; decide with {ON_EXISTING}: {choices}, or"
        " set the offset of the partition over REST",
    )
