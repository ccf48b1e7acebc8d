"""Which topics a flow copies, and what has changed since the last refresh.

A topic is copied if the topic filter selects it or if it has heartbeats, unless it is internal or a
cycle. These topics of the source are cycles:

    target.orders           was copied from the target of this flow
    west.target.orders      was copied from the target by way of `west`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sparkmirror.mirror.topics.filters import TopicFilter
from sparkmirror.mirror.topics.replication_policy import (
    AwsSampleReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    is_internal_with_any_separator,
)
from sparkmirror.mirror.topics.routed_policy import unrouted_policy
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
        """Return whether a topic of the source is copied to the target."""
        if is_internal_with_any_separator(self.policy, topic) or self.is_cycle(topic):
            return False
        heartbeats = self.replicate_heartbeats and self.policy.is_heartbeats_topic(topic)
        return heartbeats or self.topic_filter.should_replicate_topic(topic)

    def exclusion_reason(self, topic: str) -> str:
        """Return why a topic of the source is not copied, for operators; empty if it is copied."""
        if self.should_replicate_topic(topic):
            return ""
        if is_internal_with_any_separator(self.policy, topic):
            return f"{topic} is an internal topic, which is never copied"
        if self.is_cycle(topic):
            return f"{topic} was copied from {self.flow.target}, and would go round in a circle"
        return f"topics and topics.exclude do not select {topic}"

    def is_cycle(self, topic: str) -> bool:
        """Return whether the name of a topic shows that it was on the target before."""
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
        # With policies that keep names, every topic is a remote topic from the source.
        keeps_names = isinstance(
            unrouted_policy(self.policy), IdentityReplicationPolicy | AwsSampleReplicationPolicy
        )
        return self.source_alias_is_cycle and source == self.flow.source and not keeps_names

    def is_remote_topic(self, topic: str) -> bool:
        """Return whether a topic of the target is a remote topic of this flow, by its name."""
        if topic == self.policy.checkpoints_topic(self.flow.source):
            return False
        return self.policy.topic_source(topic) == self.flow.source

    def filter_source_partitions(
        self, listed: Iterable[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Return the partitions of the source to copy."""
        return _filter_by_topic(listed, self.should_replicate_topic)

    def filter_target_partitions(
        self, listed: Iterable[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Return the partitions of the target that belong to remote topics of this flow."""
        return _filter_by_topic(listed, self.is_remote_topic)

    def remote_partition(self, partition: TopicPartition) -> TopicPartition:
        """Return the remote partition of a source partition. It has the same number."""
        remote = self.policy.format_remote_topic(self.flow.source, partition.topic)
        return partition._replace(topic=remote)


def _filter_by_topic(
    listed: Iterable[TopicPartition], is_selected: Callable[[str], bool]
) -> frozenset[TopicPartition]:
    """Return the partitions of selected topics. Asks once for each topic, which may take long."""
    found: list[TopicPartition] = []
    decisions: dict[str, bool] = {}
    for partition in listed:
        selected = decisions.get(partition.topic)
        if selected is None:
            selected = decisions[partition.topic] = is_selected(partition.topic)
        if selected:
            found.append(partition)
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionDiff:
    """The difference between the partitions of both clusters and those known before.

    `missing` are source partitions without a remote partition. They are found by the name of the
    remote topic, not by its upstream topic, because not every policy has upstream topics.
    """

    flow: SourceAndTarget
    new: frozenset[TopicPartition]
    deleted: frozenset[TopicPartition]
    missing: frozenset[TopicPartition]

    @property
    def needs_reconfiguration(self) -> bool:
        """Whether topics must be created and tasks reconfigured.

        A partition that is only on the target needs no change.
        """
        return bool(self.new or self.deleted or self.missing)

    def __str__(self) -> str:
        """Return MirrorMaker 2's log text."""
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
    """Compare the selected partitions of both clusters with those known before."""
    return TopicPartitionDiff(
        flow=selection.flow,
        new=source - known_source,
        deleted=known_source - source,
        missing=frozenset(p for p in source if selection.remote_partition(p) not in target),
    )
