"""The topics in which a flow keeps its own state: what they are called, where they are.

All are compacted. The flow's own three have one partition; their names are the policy's. Connect's
three belong to the worker of a dedicated flow; their names have dots under every policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.mirror.topics.replication_policy import ReplicationPolicy
from sparkmirror.model import SourceAndTarget


class OffsetSyncsLocation(StrEnum):
    """On which side of a flow its offset syncs are kept."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A compacted topic that must exist. `cluster` is the alias of the cluster that hosts it."""

    name: str
    cluster: str
    partitions: int


def offset_syncs_topic(
    policy: ReplicationPolicy, flow: SourceAndTarget, location: OffsetSyncsLocation
) -> InternalTopic:
    """Find the offset-syncs topic: it carries the alias of the cluster it is not on."""
    here, other = flow.source, flow.target
    if location is OffsetSyncsLocation.TARGET:
        here, other = other, here
    return InternalTopic(name=policy.offset_syncs_topic(other), cluster=here, partitions=1)


def checkpoints_topic(policy: ReplicationPolicy, flow: SourceAndTarget) -> InternalTopic:
    """Find the topic that checkpoints are emitted to."""
    name = policy.checkpoints_topic(flow.source)
    return InternalTopic(name=name, cluster=flow.target, partitions=1)


def heartbeats_topic(policy: ReplicationPolicy, flow: SourceAndTarget) -> InternalTopic:
    """Find the topic that heartbeats are written to."""
    return InternalTopic(name=policy.heartbeats_topic(), cluster=flow.target, partitions=1)


def connect_topics(flow: SourceAndTarget) -> tuple[InternalTopic, InternalTopic, InternalTopic]:
    """Find the config, offset and status topics of a dedicated flow, sized as in the original."""

    def topic(kind: str, partitions: int) -> InternalTopic:
        name = f"mm2-{kind}.{flow.source}.internal"
        return InternalTopic(name=name, cluster=flow.target, partitions=partitions)

    return topic("configs", 1), topic("offsets", 25), topic("status", 5)
