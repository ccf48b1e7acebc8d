"""The internal topics of a flow: their names and the clusters that host them.

All are compacted. The flow's own three have one partition; the replication policy names them.
Connect's three belong to the worker of a dedicated flow; their names have dots with every policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.mirror.topics.replication_policy import ReplicationPolicy
from sparkmirror.model import SourceAndTarget


class OffsetSyncsLocation(StrEnum):
    """The cluster that hosts the offset-syncs topic of a flow."""

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
    """Return the offset-syncs topic. Its name has the alias of the other cluster of the flow."""
    host, other = flow.source, flow.target
    if location is OffsetSyncsLocation.TARGET:
        host, other = other, host
    return InternalTopic(name=policy.offset_syncs_topic(other), cluster=host, partitions=1)


def checkpoints_topic(policy: ReplicationPolicy, flow: SourceAndTarget) -> InternalTopic:
    """Return the checkpoints topic."""
    name = policy.checkpoints_topic(flow.source)
    return InternalTopic(name=name, cluster=flow.target, partitions=1)


def heartbeats_topic(policy: ReplicationPolicy, flow: SourceAndTarget) -> InternalTopic:
    """Return the heartbeats topic."""
    return InternalTopic(name=policy.heartbeats_topic(), cluster=flow.target, partitions=1)


def connect_topics(flow: SourceAndTarget) -> tuple[InternalTopic, InternalTopic, InternalTopic]:
    """Return the config, offset and status topics of a dedicated flow, with Java's sizes."""

    def topic(kind: str, partitions: int) -> InternalTopic:
        name = f"mm2-{kind}.{flow.source}.internal"
        return InternalTopic(name=name, cluster=flow.target, partitions=partitions)

    return topic("configs", 1), topic("offsets", 25), topic("status", 5)
