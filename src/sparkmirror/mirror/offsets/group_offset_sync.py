"""Which offsets are written to consumer groups of the target (`sync.group.offsets`).

    the group on the target    MirrorMaker 2                safely
    does not exist             writes all                   writes all
    EMPTY, without members     writes what moves forward    writes what moves forward
    any other state            tries to write all           does not write

MirrorMaker 2 relies on the broker to refuse writes to a group in use. A group may become empty
between the description and the write; then MirrorMaker 2 overwrites it, perhaps backwards. Safely
means that the caller describes the group again just before the write, and a group in use is not
written. The caller reads and writes the groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from sparkmirror.mirror.offsets.records import Checkpoint
from sparkmirror.model import OffsetAndMetadata, TopicPartition


class TargetGroupState(Enum):
    """The state of a group on the target."""

    ABSENT = "absent"
    EMPTY = "empty"
    IN_USE = "in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """A group on the target and, if EMPTY, its committed offsets (None: reset)."""

    state: TargetGroupState
    committed: Mapping[TopicPartition, OffsetAndMetadata | None]


class GroupOffsetOutcome(Enum):
    """The result for one remote partition."""

    WRITTEN = "written to the group on the target"
    TARGET_AHEAD = "the group on the target has already got there, or further"
    GROUP_IN_USE = "the group on the target is in use, and its own consumers commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsetWrite:
    """The offsets to write, and the outcome of each remote partition. May have no offsets."""

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    outcomes: Mapping[TopicPartition, GroupOffsetOutcome]


def plan_group_offset_write(
    checkpoints: Mapping[TopicPartition, Checkpoint], group: TargetGroup, *, safely: bool
) -> GroupOffsetWrite:
    """Choose the offsets to write to a group of the target from its last checkpoints."""
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
    committed = group.committed.get(checkpoint.partition)
    if committed is not None and committed.offset >= checkpoint.downstream:
        return GroupOffsetOutcome.TARGET_AHEAD
    return GroupOffsetOutcome.WRITTEN
