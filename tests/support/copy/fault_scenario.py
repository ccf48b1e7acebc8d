"""Something under way for a fault to strike: a topic of all kinds of batches, copied slowly."""

from __future__ import annotations

from typing import Any

from sparkmirror.copy.snapshot import CopySnapshot
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import (
    MIXED_PARTITIONS,
    SMALL_MESSAGE_LIMIT,
    BatchWriter,
    write_mixed_batches,
)

SLOW_COPY: dict[str, Any] = {"bytes_per_s": 50_000}
"""So slow that a fault finds everything under way, even if the computer stands still for seconds
before it strikes: what `prepared` has written takes more than half a minute."""


def create_mixed_topic(flow: CopyFlow, topic: str, writer: BatchWriter) -> dict[str, int]:
    """A topic with plain, transactional and fat partitions, and its number of partitions."""
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    write_mixed_batches(writer, topic)
    return {topic: MIXED_PARTITIONS}


def has_copied_records(seen: CopySnapshot) -> bool:
    """Whether copying is under way."""
    return seen.records > 0


def all_partitions_leased(seen: CopySnapshot) -> bool:
    """Whether every partition is being copied."""
    return all(one.state == "leased" for one in seen.partitions.values())
