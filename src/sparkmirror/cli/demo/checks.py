"""What the demo claims in the end, checked: every record on both sides, and where the group stands.

Reads everything back through another client library than the one that copied it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.groups import list_consumer_group_offsets
from sparkmirror.cluster.topic_contents import ConsumerRecord, read_topic
from sparkmirror.errors import ClusterError, TopicMissing
from sparkmirror.model import TopicPartition

POLL_INTERVAL_S = 0.5
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCheckResult:
    """One thing that was checked."""

    subject: str
    detail: str
    passed: bool


def check_topic(
    source: ClusterAccess, topic: str, target: ClusterAccess, remote: str, within_s: float
) -> DemoCheckResult:
    """Compare two topics: records, their order, keys, values, headers, times, partitions."""
    wanted = read_topic(source, topic, timeout_s=within_s)

    def copied() -> list[ConsumerRecord]:
        try:
            return read_topic(target, remote, timeout_s=within_s)
        except TopicMissing:
            return []

    there = _poll_until(copied, lambda found: len(found) >= len(wanted), within_s)
    same = [_record_content(one) for one in wanted] == [_record_content(one) for one in there]
    detail = f"{len(wanted):,} records there, {len(there):,} here"
    return DemoCheckResult(
        subject=f"{topic} = {remote}",
        detail=f"{detail}, all alike" if same else f"{detail}: they differ",
        passed=same and bool(wanted),
    )


def check_group_offsets(
    group: str,
    committed: Mapping[TopicPartition, int],
    source: ClusterAccess,
    target: ClusterAccess,
    remote: Callable[[str], str],
    within_s: float,
) -> DemoCheckResult:
    """Compare what the group would read next on both sides: it must be the same record."""
    wanted = {TopicPartition(remote(p.topic), p.partition): at for p, at in committed.items() if at}
    positions = _poll_until(
        lambda: _committed_offsets(target, group),
        lambda found: all(found.get(place) == at for place, at in wanted.items()),
        within_s,
    )
    next_there = _next_records(source, committed, within_s)
    next_here = _next_records(target, {p: positions.get(p, -1) for p in wanted}, within_s)
    same = all(
        next_there.get(p) is not None
        and next_there.get(p) == next_here.get(TopicPartition(remote(p.topic), p.partition))
        for p, at in committed.items()
        if at
    )
    return DemoCheckResult(
        subject=f"group {group}",
        detail=f"goes on at the same record in {len(wanted)} partitions"
        if same
        else f"stands at {_format_offsets(positions)} here",
        passed=same and bool(wanted),
    )


def _record_content(record: ConsumerRecord) -> tuple[object, ...]:
    return (
        *(record.partition, record.timestamp_ms, record.key, record.value),
        record.headers,
    )


def _committed_offsets(access: ClusterAccess, group: str) -> dict[TopicPartition, int]:
    router = access.new_router("sparkmirror-demo")
    try:
        found = list_consumer_group_offsets(router, [group])[group]
    finally:
        router.close()
    if isinstance(found, ClusterError):
        raise found
    return {partition: at.offset for partition, at in found.items() if at is not None}


def _next_records(
    access: ClusterAccess, positions: Mapping[TopicPartition, int], within_s: float
) -> dict[TopicPartition, tuple[object, ...]]:
    found: dict[TopicPartition, tuple[object, ...]] = {}
    for topic in sorted({partition.topic for partition in positions}):
        for record in read_topic(access, topic, timeout_s=within_s):
            partition = TopicPartition(topic, record.partition)
            if positions.get(partition) == record.offset:
                found[partition] = _record_content(record)
    return found


def _format_offsets(positions: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{p}: {at}" for p, at in sorted(positions.items())) or "no offset at all"


def _poll_until(
    look: Callable[[], Seen], is_enough: Callable[[Seen], bool], within_s: float
) -> Seen:
    """Look until it is enough, or time is up; return what was seen last."""
    deadline = time.monotonic() + within_s
    while True:
        seen = look()
        if is_enough(seen) or time.monotonic() > deadline:
            return seen
        time.sleep(POLL_INTERVAL_S)
