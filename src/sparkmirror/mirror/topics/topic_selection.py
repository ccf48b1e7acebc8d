"""Which topics a flow copies, and what has changed since the last look.

Names in, names out: listing and describing topics is done elsewhere. A topic is copied if people
want it (the filter), or if it carries heartbeats, unless it is internal or would run in a circle.

    target.orders on the source      a copy made from our own target: back it must not go
    west.target.orders               the same one cluster further: found by following the name
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparkmirror.mirror.topics.filters import TopicFilter
from sparkmirror.mirror.topics.replication_policy import (
    AwsSampleReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    is_internal_with_any_separator,
)
from sparkmirror.model import SourceAndTarget, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSelection:
    """The rules of one flow.

    `source_alias_is_cycle` is Kafka 4.4's rule that a topic which already carries the source's
    alias is not copied again; until 4.3 it is copied as `source.source.orders`.
    """

    flow: SourceAndTarget
    policy: ReplicationPolicy
    topic_filter: TopicFilter
    replicate_heartbeats: bool = True
    source_alias_is_cycle: bool = False

    def should_replicate_topic(self, topic: str) -> bool:
        """Say whether a topic of the source is copied to the target."""
        if is_internal_with_any_separator(self.policy, topic) or self.is_cycle(topic):
            return False
        heartbeats = self.replicate_heartbeats and self.policy.is_heartbeats_topic(topic)
        return heartbeats or self.topic_filter.should_replicate_topic(topic)

    def is_cycle(self, topic: str) -> bool:
        """Say whether the topic has been on the target before, as far as its name tells."""
        seen: set[str] = set()
        name: str | None = topic
        while name is not None and name not in seen:
            source = self.policy.topic_source(name)
            if source is None:
                return False
            if source == self.flow.target or self._is_source_cycle(source):
                return True
            seen.add(name)
            name = self.policy.upstream_topic(name)
        return False

    def _is_source_cycle(self, source: str) -> bool:
        # Policies that keep names call everything a copy from the source.
        keeps_names = isinstance(
            self.policy, IdentityReplicationPolicy | AwsSampleReplicationPolicy
        )
        return self.source_alias_is_cycle and source == self.flow.source and not keeps_names

    def is_remote_topic(self, topic: str) -> bool:
        """Say whether a topic of the target counts as this flow's copy, by its name."""
        if topic == self.policy.checkpoints_topic(self.flow.source):
            return False
        return self.policy.topic_source(topic) == self.flow.source

    def filter_source_partitions(
        self, listed: Iterable[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Keep, of all partitions of the source, those to copy."""
        return frozenset(p for p in listed if self.should_replicate_topic(p.topic))

    def filter_target_partitions(
        self, listed: Iterable[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Keep, of all partitions of the target, those that count as this flow's copies."""
        return frozenset(p for p in listed if self.is_remote_topic(p.topic))

    def remote_partition(self, partition: TopicPartition) -> TopicPartition:
        """Say where a source partition is copied to: the same number of the remote topic."""
        remote = self.policy.format_remote_topic(self.flow.source, partition.topic)
        return partition._replace(topic=remote)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionDiff:
    """What a look at both clusters found, against what was known of the source before.

    `missing` are source partitions without a copy. They are counted by the name the copy would
    have, not by the way back from the copy's name: a policy that knows no way back would otherwise
    miss everything for ever.
    """

    flow: SourceAndTarget
    new: frozenset[TopicPartition]
    deleted: frozenset[TopicPartition]
    missing: frozenset[TopicPartition]

    @property
    def needs_reconfiguration(self) -> bool:
        """Say whether topics must be created and tasks dealt again.

        What appears only on the target calls for nothing.
        """
        return bool(self.new or self.deleted or self.missing)

    def __str__(self) -> str:
        """Say it in MirrorMaker 2's words."""
        return (
            f"Found {len(self.new)} new topic-partitions on {self.flow.source}. "
            f"Found {len(self.deleted)} deleted topic-partitions on {self.flow.source}. "
            f"Found {len(self.missing)} topic-partitions missing on {self.flow.target}."
        )


def diff_topic_partitions(
    selection: TopicSelection,
    *,
    known_source: frozenset[TopicPartition],
    source: frozenset[TopicPartition],
    target: frozenset[TopicPartition],
) -> TopicPartitionDiff:
    """Compare what both clusters hold now with what was known; all three already selected."""
    return TopicPartitionDiff(
        flow=selection.flow,
        new=source - known_source,
        deleted=known_source - source,
        missing=frozenset(p for p in source if selection.remote_partition(p) not in target),
    )
