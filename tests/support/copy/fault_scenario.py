"""A slow copy of all kinds of batches. A test causes a fault while it runs."""

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
"""The copy of `create_mixed_topic` takes more than half a minute at this rate, so it is not done
when the fault happens, even on a slow computer."""


def create_mixed_topic(flow: CopyFlow, topic: str, writer: BatchWriter) -> dict[str, int]:
    """Create a topic with plain, transactional and large batches; return its partition count."""
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    write_mixed_batches(writer, topic, make_records=flow.make_records)
    return {topic: MIXED_PARTITIONS}


def has_copied_records(seen: CopySnapshot) -> bool:
    return seen.records > 0


def all_partitions_leased(seen: CopySnapshot) -> bool:
    return all(one.state == "leased" for one in seen.partitions.values())
