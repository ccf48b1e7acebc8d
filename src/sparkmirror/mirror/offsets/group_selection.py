"""Which consumer groups of the source get checkpoints.

A group is selected if the group filter accepts it and if it has a committed offset on a topic that
the topic filter accepts. Heartbeats, internal topics and cycles do not matter here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparkmirror.mirror.topics.filters import GroupFilter, TopicFilter
from sparkmirror.model import TopicPartition


def groups_to_replicate(listed: Iterable[str], group_filter: GroupFilter) -> frozenset[str]:
    """Return the groups that the group filter accepts."""
    return frozenset(group for group in listed if group_filter.should_replicate_group(group))


def groups_with_offsets(
    committed: Mapping[str, Iterable[TopicPartition]], topic_filter: TopicFilter
) -> frozenset[str]:
    """Return the groups with a committed offset on at least one topic that the filter accepts."""
    return frozenset(
        group
        for group, partitions in committed.items()
        if any(topic_filter.should_replicate_topic(partition.topic) for partition in partitions)
    )
