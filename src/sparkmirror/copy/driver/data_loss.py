"""Losses: the source no longer holds what was to be copied next, or is another topic by now.

    retention    the log begins after the position: what lies between is gone
    truncated    the log ends before the position: what was copied beyond is not there any more
    recreated    same name, another topic: nothing of the old one is left
    remote       the remote topic was recreated: what was copied to the old one is gone

Pure: finds out which it is and where each policy goes on. Java MirrorMaker 2 passes over all four
in silence.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.ledger import LedgerEntry


class LossKind(enum.StrEnum):
    """What was lost."""

    RETENTION = "retention"
    TRUNCATED = "truncated"
    RECREATED = "recreated"
    REMOTE_RECREATED = "remote-recreated"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLoss:
    """Source offsets from `lost_from` up to, not including, `lost_to` are not there any more."""

    kind: LossKind
    lost_from: int
    lost_to: int
    text: str
    start: int
    position: int

    def resume_position(self, policy: DataLossPolicy) -> int | None:
        """The source position under a policy; None means nowhere until somebody decides."""
        if policy is DataLossPolicy.HALT:
            return None
        if policy is DataLossPolicy.RESTART or self.kind is LossKind.RECREATED:
            return self.start
        if self.kind is LossKind.TRUNCATED:
            return self.lost_from
        return self.position if self.kind is LossKind.REMOTE_RECREATED else self.lost_to


def find_loss(entry: LedgerEntry, there: LogRange, ids: tuple[str, str]) -> DataLoss | None:
    """Compare what the ledger remembers with the logs. `ids` are the source's and the remote's."""
    position, ours = entry.position, entry.extension
    if ours and ours.source_topic_id and ids[0] and ours.source_topic_id != ids[0]:
        return _loss(
            LossKind.RECREATED,
            there,
            position,
            (there.start, there.start),
            "the source topic was deleted and created again; nothing of the old one is left",
        )
    if ours and ours.target_topic_id and ids[1] and ours.target_topic_id != ids[1]:
        return _loss(
            LossKind.REMOTE_RECREATED,
            there,
            position,
            (there.start, position),
            "the remote topic was deleted and created again; what was copied before is gone",
        )
    if there.epoch_end is not None and there.epoch_end < position:
        cut = max(there.epoch_end, there.start)
        return _loss(
            LossKind.TRUNCATED,
            there,
            position,
            (cut, position),
            f"the source lost offsets {cut} to {position - 1} after they were copied: a replica"
            " that was behind leads now",
        )
    return find_range_loss(position, there)


def find_range_loss(position: int, there: LogRange) -> DataLoss | None:
    """Whether a position lies outside the log."""
    if position < there.start:
        return _loss(
            LossKind.RETENTION,
            there,
            position,
            (position, there.start),
            f"the source deleted offsets {position} to {there.start - 1} before they were copied",
        )
    end = there.high_watermark
    if position > end:
        return _loss(
            LossKind.TRUNCATED,
            there,
            position,
            (end, end),
            f"the source ends at offset {end}, before the position {position}: it was"
            " truncated or recreated",
        )
    return None


def _loss(
    kind: LossKind, there: LogRange, position: int, lost: tuple[int, int], text: str
) -> DataLoss:
    return DataLoss(
        kind=kind,
        lost_from=lost[0],
        lost_to=lost[1],
        text=text,
        start=there.start,
        position=position,
    )
