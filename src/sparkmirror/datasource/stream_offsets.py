"""The offsets of a stream: where reading goes on in each partition, as in the checkpoint. Pure.

    {"orders": {"0": 23, "1": 5}, "topic ids": {"orders": "5f0c..."}}

Without the ids this is the form of Spark's own Kafka source. The id of a topic tells whether it was
deleted and created again, so that its offsets count from 0 again. Brokers before 2.8 have no ids;
such a topic, and one whose id is not in an older checkpoint, is taken for the same topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sparkmirror.datasource.offset_positions import (
    PartitionOffsets,
    offsets_from_json,
    offsets_to_json,
)

OffsetJson = dict[str, Any]
"""An offset as Spark keeps it."""

NOTHING_READ: OffsetJson = {"starting offsets": {}}
"""The offset of a stream before its first micro-batch."""
_TOPIC_IDS = "topic ids"
"""No topic can have a name with a space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffsets:
    """The next offset of each partition, and the ids of the topics that have one."""

    offsets: PartitionOffsets
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: OffsetJson) -> Self | None:
        """Return what `to_json` has written; None if nothing was read."""
        if content == NOTHING_READ:
            return None
        topics = {topic: offsets for topic, offsets in content.items() if topic != _TOPIC_IDS}
        return cls(offsets=offsets_from_json(topics), topic_ids=content.get(_TOPIC_IDS, {}))

    def to_json(self) -> OffsetJson:
        """Return the form for Spark. Equal offsets have equal forms."""
        named = {partition.topic for partition in self.offsets}
        ids = {topic: self.topic_ids[topic] for topic in sorted(named & self.topic_ids.keys())}
        return offsets_to_json(self.offsets) | ({_TOPIC_IDS: ids} if ids else {})

    def has_same_topic(self, topic: str, topic_ids: Mapping[str, str]) -> bool:
        """Return whether a topic is still the one that these offsets count in."""
        known = self.topic_ids.get(topic)
        return known is None or topic_ids.get(topic, known) == known
