"""Writes translated offsets to groups of the target: only forward, only to groups without members.

For each group, in this order and without delay:

    1. describe the group               in use: write nothing
    2. list its offsets                 write only offsets that are ahead of them
    3. write                            the broker rejects it if a member has joined since 1

MirrorMaker 2 describes all groups first and writes much later; a group that was in use in between
and is empty again would be set back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.cluster.group_states import EMPTY_STATE, describe_group_state
from sparkmirror.cluster.groups import (
    GROUP_IN_USE_CODES,
    OFFSET_COMMIT,
    alter_consumer_group_offsets,
    list_consumer_group_offsets,
)
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.offsets.group_offset_sync import (
    GroupOffsetOutcome,
    TargetGroup,
    TargetGroupState,
    plan_group_offset_write,
)
from sparkmirror.mirror.offsets.records import Checkpoint
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode

log = logging.getLogger(__name__)

SyncOutcomes = dict[TopicPartition, str]
"""The outcome of each remote partition's offset, as text for operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedGroup:
    """What became of a group's offsets, and the error if the target has refused some."""

    outcomes: SyncOutcomes
    refusal: ClusterError | None = None


def sync_group(
    target: Router, group: str, checkpoints: Mapping[TopicPartition, Checkpoint]
) -> SyncedGroup:
    """Write a group's checkpoints to the target; return the outcomes. Raises a ClusterError."""
    found = _describe_target_group(target, group)
    plan = plan_group_offset_write(checkpoints, found, safely=True)
    written = {partition: outcome.value for partition, outcome in plan.outcomes.items()}
    if not plan.offsets:
        return SyncedGroup(outcomes=written)
    codes = alter_consumer_group_offsets(target, group, plan.offsets)
    if any(code in GROUP_IN_USE_CODES for code in codes.values()):
        log.info(
            "Offsets of group %s were not synced: consumers are using this group in the target"
            " cluster",
            group,
        )
    for partition, code in codes.items():
        if code is not ErrorCode.NONE:
            written[partition] = _refusal_text(code)
    return SyncedGroup(outcomes=written, refusal=_find_refusal(target.client.cluster, group, codes))


def _describe_target_group(target: Router, group: str) -> TargetGroup:
    state = describe_group_state(target, group)
    if state is None:
        return TargetGroup(state=TargetGroupState.ABSENT, committed={})
    if state != EMPTY_STATE:
        return TargetGroup(state=TargetGroupState.IN_USE, committed={})
    committed = list_consumer_group_offsets(target, [group])[group]
    if isinstance(committed, ClusterError):
        raise committed
    return TargetGroup(state=TargetGroupState.EMPTY, committed=committed)


def _find_refusal(
    cluster: str, group: str, codes: Mapping[TopicPartition, ErrorCode]
) -> ClusterError | None:
    """Return the error of the first offset that was refused although the group is not in use."""
    for partition, code in sorted(codes.items()):
        if code is not ErrorCode.NONE and code not in GROUP_IN_USE_CODES:
            is_of_topic = code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            named = partition.topic if is_of_topic else group
            return error_for_code(cluster, OFFSET_COMMIT.name, code, named)
    return None


def _refusal_text(code: ErrorCode) -> str:
    if code in GROUP_IN_USE_CODES:
        return GroupOffsetOutcome.GROUP_IN_USE.value
    return f"the target rejected it: {code}"
