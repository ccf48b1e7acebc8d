"""Which offsets are written to consumer groups of the target (`sync.group.offsets`).

    the group on the target    MirrorMaker 2                safely
    does not exist             writes all                   writes all
    EMPTY, nobody in it        writes what moves forward    writes what moves forward
    anything else              tries to write all           writes nothing

MirrorMaker 2 relies on the broker to refuse writes to a group in use. Between looking and writing
a group may fall empty; it is then overwritten, perhaps backwards. Safely means: look again right
before writing, which is the caller's part, and leave a group in use alone.
Pure: reading and writing groups is the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from sparkmirror.mirror.offsets.records import Checkpoint
from sparkmirror.model import OffsetAndMetadata, TopicPartition


class TargetGroupState(Enum):
    """What is known of a group on the target."""

    ABSENT = "absent"
    EMPTY = "empty"
    IN_USE = "in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """A group on the target, and, if EMPTY, what it has committed there (None: reset)."""

    state: TargetGroupState
    committed: Mapping[TopicPartition, OffsetAndMetadata | None]


class GroupOffsetOutcome(Enum):
    """What becomes of one remote partition's offset."""

    WRITTEN = "written to the group on the target"
    TARGET_AHEAD = "the group on the target has already got there, or further"
    GROUP_IN_USE = "the group on the target is in use, and its own consumers commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsetWrite:
    """What to write, and the outcome for each remote partition. Empty offsets need no request."""

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    outcomes: Mapping[TopicPartition, GroupOffsetOutcome]


def plan_group_offset_write(
    checkpoints: Mapping[TopicPartition, Checkpoint], group: TargetGroup, *, safely: bool
) -> GroupOffsetWrite:
    """Choose, among the last checkpoints of a group, the offsets to write to the target."""
    outcomes = {
        partition: _outcome(checkpoint, group, safely=safely)
        for partition, checkpoint in checkpoints.items()
    }
    offsets = {
        partition: OffsetAndMetadata(checkpoint.downstream, checkpoint.metadata)
        for partition, checkpoint in checkpoints.items()
        if outcomes[partition] is GroupOffsetOutcome.WRITTEN
    }
    return GroupOffsetWrite(offsets=offsets, outcomes=outcomes)


def _outcome(checkpoint: Checkpoint, group: TargetGroup, *, safely: bool) -> GroupOffsetOutcome:
    if group.state is TargetGroupState.IN_USE:
        return GroupOffsetOutcome.GROUP_IN_USE if safely else GroupOffsetOutcome.WRITTEN
    if group.state is TargetGroupState.ABSENT:
        return GroupOffsetOutcome.WRITTEN
    standing = group.committed.get(checkpoint.partition)
    if standing is not None and standing.offset >= checkpoint.downstream:
        return GroupOffsetOutcome.TARGET_AHEAD
    return GroupOffsetOutcome.WRITTEN
