"""Which consumer groups of the source are worth checkpoints.

A group counts if people want it and if it has committed an offset on a topic they want. The second
question is asked of the topic filter itself: heartbeats, internal topics and circles do not matter
here. Asking a cluster for groups and offsets is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparkmirror.mirror.topics.filters import GroupFilter, TopicFilter
from sparkmirror.model import TopicPartition


def groups_to_replicate(listed: Iterable[str], group_filter: GroupFilter) -> frozenset[str]:
    """Keep, of all groups listed, those whose offsets are to be asked for."""
    return frozenset(group for group in listed if group_filter.should_replicate_group(group))


def groups_with_offsets(
    committed: Mapping[str, Iterable[TopicPartition]], topic_filter: TopicFilter
) -> frozenset[str]:
    """Keep the groups with an offset on at least one wanted topic, by what each has committed."""
    return frozenset(
        group
        for group, partitions in committed.items()
        if any(topic_filter.should_replicate_topic(partition.topic) for partition in partitions)
    )
