"""Something under way for a fault to strike: a topic of all kinds of batches, copied slowly."""

from __future__ import annotations

from typing import Any

from sparkmirror.copy.snapshot import Snapshot
from tests.support.flows import Flow
from tests.support.writing import MIXED, MIXED_LIMIT, Writer, write_mixed

SLOWLY: dict[str, Any] = {"bytes_per_s": 50_000}
"""So slow that a fault finds everything under way, even if the computer stands still for seconds
before it strikes: what `prepared` has written takes more than half a minute."""


def prepared(flow: Flow, topic: str, writer: Writer) -> dict[str, int]:
    """A topic with plain, transactional and fat partitions, and its number of partitions."""
    flow.create(topic, MIXED, remote=MIXED_LIMIT)
    write_mixed(writer, topic)
    return {topic: MIXED}


def something(seen: Snapshot) -> bool:
    """Whether copying is under way."""
    return seen.records > 0


def everything(seen: Snapshot) -> bool:
    """Whether every partition is being copied."""
    return all(one.state == "leased" for one in seen.partitions.values())
