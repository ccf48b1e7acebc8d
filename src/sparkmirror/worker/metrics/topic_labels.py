"""The labels of a topic, or of one of its partitions."""

from __future__ import annotations

from sparkmirror.metrics.definition import PARTITION
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.model import TopicPartition

WHOLE_TOPIC = -1
"""Stands for the partition in the key of a whole topic."""


def topic_labels(key: TopicPartition) -> dict[str, str]:
    """Return `topic`, and `partition` unless the key is that of a whole topic."""
    labels = {"topic": jmx_sanitize(key.topic)}
    return labels if key.partition == WHOLE_TOPIC else labels | {PARTITION: str(key.partition)}
