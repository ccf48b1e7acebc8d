"""Frozen values that all packages use. Names are Kafka's and MirrorMaker 2's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

MAX_PARTITION = 2**31 - 1
_PARTITION = re.compile(r"\+?[0-9]+")
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: str) -> bool:
    """Whether a topic can have this name."""
    return bool(_TOPIC_NAME.fullmatch(name)) and name not in (".", "..")


class TopicPartition(NamedTuple):
    """One partition of one topic, written `topic-partition` as Kafka writes it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """Split at the last `-`, as MirrorMaker 2 does. Raises ValueError."""
        topic, dash, partition = text.rpartition("-")
        if not dash or not _PARTITION.fullmatch(partition) or int(partition) > MAX_PARTITION:
            raise ValueError(f"{text!r} is not of the form topic-partition")
        return cls(topic, int(partition))


@dataclass(frozen=True, slots=True, order=True)
class SourceAndTarget:
    """A flow's two aliases, written `source->target`."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """What a consumer group committed for a partition: the next offset, and its metadata."""

    offset: int
    metadata: str = ""
