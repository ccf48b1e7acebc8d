"""Offsets put into groups of the target: only forward, and only while nobody is in the group.

For each group, in this order and with nothing in between:

    1. in which state is it?            in use: nothing is written
    2. what has it committed?           only what moves it forward is written
    3. write                            the broker refuses if somebody has joined since 1

MirrorMaker 2 looks at all groups first and writes much later; a group that was in use then and is
empty now would be set back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkmirror.cluster.group_states import EMPTY, group_state
from sparkmirror.cluster.groups import IN_USE, commit_offsets, committed_offsets
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.group_offsets import Presence, TargetGroup, WriteOutcome, plan_write
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.routing import Router

log = logging.getLogger(__name__)

Written = dict[TopicPartition, str]
"""What became of each remote partition's offset, in words for people."""


def sync_group(
    target: Router, group: str, checkpoints: Mapping[TopicPartition, Checkpoint]
) -> Written:
    """Bring a group of the target to where its checkpoints are. Raises a ClusterError."""
    found = _look(target, group)
    plan = plan_write(checkpoints, found, safely=True)
    written = {partition: outcome.value for partition, outcome in plan.outcomes.items()}
    if not plan.offsets:
        return written
    codes = commit_offsets(target, group, plan.offsets)
    if any(code in IN_USE for code in codes.values()):
        log.info(
            "Offsets of group %s were not synced: consumers are using this group in the target"
            " cluster",
            group,
        )
    for partition, code in codes.items():
        if code is not Code.NONE:
            written[partition] = _refused(code)
    return written


def _look(target: Router, group: str) -> TargetGroup:
    state = group_state(target, group)
    if state is None:
        return TargetGroup(presence=Presence.ABSENT, committed={})
    if state != EMPTY:
        return TargetGroup(presence=Presence.IN_USE, committed={})
    committed = committed_offsets(target, [group])[group]
    if isinstance(committed, ClusterError):
        raise committed
    return TargetGroup(presence=Presence.EMPTY, committed=committed)


def _refused(code: Code) -> str:
    if code in IN_USE:
        return WriteOutcome.GROUP_IN_USE.value
    return f"the target refused it: {code}"
