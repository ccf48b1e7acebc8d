"""Data loss: the source no longer has the records to copy next, or a topic was recreated.

    retention         the log starts after the position: the records in between were deleted
    truncated         the log ends before the position: records that were copied are gone
    recreated         the source topic was deleted and created again
    remote-recreated  the remote topic was deleted and created again

Where copying resumes under each policy:

                      halt   skip                             restart
    retention         no     at the start of the log          at the start of the log
    truncated         no     where the log was truncated      at the start of the log
    recreated         no     at the start of the log          at the start of the log
    remote-recreated  no     at the position                  at the start of the log

A remote topic with another name is no loss: the topic before it keeps what was copied there
(`renamed_from`). Copying goes on at the position, in the topic that has the name now.

Pure. Java MirrorMaker 2 reports none of the four.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.ledger import LedgerEntry

UNKNOWN_OFFSET = -1


class LossKind(enum.StrEnum):
    """The cause of a data loss."""

    RETENTION = "retention"
    TRUNCATED = "truncated"
    RECREATED = "recreated"
    REMOTE_RECREATED = "remote-recreated"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLoss:
    """Source offsets from `lost_from` up to, not including, `lost_to` are lost.

    `lost_to` is -1 if the end of the lost range is unknown: that of a recreated topic.
    """

    kind: LossKind
    lost_from: int
    lost_to: int
    text: str
    start: int
    position: int

    def resume_position(self, policy: DataLossPolicy) -> int | None:
        """Return the source position under a policy; None: the operator must decide."""
        if policy is DataLossPolicy.HALT:
            return None
        if policy is DataLossPolicy.RESTART or self.kind is LossKind.RECREATED:
            return self.start
        if self.kind is LossKind.TRUNCATED:
            return self.lost_from
        return self.position if self.kind is LossKind.REMOTE_RECREATED else self.lost_to


def find_loss(
    entry: LedgerEntry,
    source_range: LogRange,
    topic_ids: tuple[str, str],
    last_known_end: int = UNKNOWN_OFFSET,
    *,
    is_renamed: bool = False,
) -> DataLoss | None:
    """Compare a ledger entry with the logs. `topic_ids`: of the source and the remote topic.

    `last_known_end` is the last end of the source's log that a task saw; -1 if none did.
    `is_renamed` says that the entry is about a remote topic with another name.
    """
    position, extension = entry.position, entry.extension
    source_id, target_id = topic_ids
    if extension and _differ(extension.source_topic_id, source_id):
        return _loss(
            LossKind.RECREATED,
            source_range,
            position,
            (position, last_known_end if last_known_end > position else UNKNOWN_OFFSET),
            "the source topic was deleted and created again;"
            f" {_recreated_text(position, last_known_end)}",
        )
    if extension and not is_renamed and _differ(extension.target_topic_id, target_id):
        return _loss(
            LossKind.REMOTE_RECREATED,
            source_range,
            position,
            (source_range.start, position),
            "the remote topic was deleted and created again; what was copied before is gone",
        )
    if source_range.epoch_end is not None and source_range.epoch_end < position:
        truncated_at = max(source_range.epoch_end, source_range.start)
        return _loss(
            LossKind.TRUNCATED,
            source_range,
            position,
            (truncated_at, position),
            f"the source lost offsets {truncated_at} to {position - 1} after they were copied: a"
            " replica that was behind leads now",
        )
    return _find_range_loss(position, source_range)


def renamed_from(entry: LedgerEntry, remote: str, default: str, target_topic_id: str) -> str:
    """Return the former name of the remote topic if it has another name now, else ''.

    `default` is the name that an entry without a name stands for (`copy.ledger`). One topic id
    means one topic, whatever the entry says: earlier versions stored no name.
    """
    extension = entry.extension
    if extension is None:
        return ""
    former = extension.stored_remote
    if extension.target_topic_id and target_topic_id:
        if extension.target_topic_id == target_topic_id:
            return ""
        former = former or default
    return "" if former == remote else former


def _recreated_text(position: int, last_known_end: int) -> str:
    """Say what of a deleted topic was copied. What was appended after the last fetch is unknown."""
    if last_known_end > position:
        return (
            f"offsets {position} to {last_known_end - 1} of the old topic, and any after them, are"
            " lost"
        )
    return f"offsets from {position} on of the old topic, if there were any, are lost"


def _find_range_loss(position: int, source_range: LogRange) -> DataLoss | None:
    """Return the loss if a position lies outside the source log."""
    start, end = source_range.start, source_range.high_watermark
    if position < start:
        return _loss(
            LossKind.RETENTION,
            source_range,
            position,
            (position, start),
            f"the source deleted offsets {position} to {start - 1} before they were copied",
        )
    if position > end:
        return _loss(
            LossKind.TRUNCATED,
            source_range,
            position,
            (end, position),
            f"the source lost offsets {end} to {position - 1} after they were copied: its log was"
            " truncated or created again",
        )
    return None


def _differ(stored_id: str, current_id: str) -> bool:
    """Whether both topic ids are known and differ."""
    return bool(stored_id and current_id) and stored_id != current_id


def _loss(
    kind: LossKind, source_range: LogRange, position: int, lost: tuple[int, int], text: str
) -> DataLoss:
    return DataLoss(
        kind=kind,
        lost_from=lost[0],
        lost_to=lost[1],
        text=text,
        start=source_range.start,
        position=position,
    )
