"""Why a flow selects no topic of its source: counts of the topics by what keeps them out. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum

from sparkmirror.mirror.topics.filters import DefaultTopicFilter
from sparkmirror.mirror.topics.replication_policy import is_internal_with_any_separator
from sparkmirror.mirror.topics.topic_selection import TopicSelection


class TopicCategory(Enum):
    """What becomes of a topic of the source. The texts stand in problems, behind a number."""

    SELECTED = "selected"
    HEARTBEATS = "selected as heartbeats"
    INTERNAL = "internal"
    CYCLE = "copied from the target"
    EXCLUDED = "excluded by topics.exclude"
    NOT_MATCHED = "not matched"


def count_topics(
    selection: TopicSelection, topics: Mapping[str, bool]
) -> Mapping[TopicCategory, int]:
    """Count topics by category. The mapping says of each whether the broker calls it internal."""
    return Counter(
        _category(selection, topic, is_internal=is_internal)
        for topic, is_internal in topics.items()
    )


def explain_nothing_selected(
    source: str, counts: Mapping[TopicCategory, int], topics_key: str
) -> str:
    """Return the problem of a flow that selects no topic. `topics_key` is its key and value."""
    total = sum(counts.values())
    if not total:
        return (
            f"{source} shows no topic, so none matches {topics_key}; create a topic there, or allow"
            " this mirror's user to describe topics (kafka-acls --add --operation Describe"
            " --operation Read --topic)"
        )
    shown = ", ".join(
        f"{counts[category]} {category.value}" for category in TopicCategory if counts.get(category)
    )
    return (
        f"no topic of {source} matches {topics_key}; topics there: {shown}; correct topics and"
        " topics.exclude, create a topic there, or allow this mirror's user to describe it"
    )


def _category(selection: TopicSelection, topic: str, *, is_internal: bool) -> TopicCategory:
    if is_internal or is_internal_with_any_separator(selection.policy, topic):
        return TopicCategory.INTERNAL
    if selection.is_cycle(topic):
        return TopicCategory.CYCLE
    topic_filter = selection.topic_filter
    if topic_filter.should_replicate_topic(topic):
        return TopicCategory.SELECTED
    if selection.should_replicate_topic(topic):
        return TopicCategory.HEARTBEATS
    if isinstance(topic_filter, DefaultTopicFilter) and topic_filter.include.matches(topic):
        return TopicCategory.EXCLUDED
    return TopicCategory.NOT_MATCHED
