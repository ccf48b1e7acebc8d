"""A topic in a request, by name or by id; and partitions grouped by topic."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable
from typing import TypeAlias

from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.primitive_types import (
    encode_compact_string,
    read_compact_string,
    read_uuid_bytes,
)

TopicKey: TypeAlias = str | bytes
"""The name, or the 16 bytes of the id: they are hashed several times for each batch."""


def require_name(topic: TopicKey, request: str) -> str:
    """Return the name. Raises ValueError for an id: this version needs names."""
    if isinstance(topic, bytes):
        raise ValueError(f"this version of {request} needs names, not the topic id {topic.hex()}")
    return topic


def encode_compact_topic(topic: TopicKey, request: str, *, by_id: bool) -> bytes:
    """Encode a topic for a flexible version."""
    if not by_id:
        return encode_compact_string(require_name(topic, request))
    if isinstance(topic, str):
        raise ValueError(f"this version of {request} needs topic ids, not the name {topic}")
    return topic


def read_compact_topic(view: memoryview, at: int, *, by_id: bool) -> tuple[TopicKey, int]:
    """Read a topic of a flexible version."""
    if by_id:
        return read_uuid_bytes(view, at)
    name, at = read_compact_string(view, at)
    return name or "", at


def group_by_topic(partitions: Iterable[TopicPartition]) -> ItemsView[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition)
    return topics.items()
