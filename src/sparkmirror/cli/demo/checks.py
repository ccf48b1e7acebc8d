"""The checks at the end of the demo: every record on both clusters, and the group's offsets.

Reads through another client library than the one that copied the records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.groups import list_consumer_group_offsets
from sparkmirror.cluster.produce_and_consume import ConsumerRecord, read_topic
from sparkmirror.errors import ClusterError, TopicMissing
from sparkmirror.model import TopicPartition

POLL_INTERVAL_S = 0.5
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCheckResult:
    """The result of one check."""

    subject: str
    detail: str
    passed: bool


def check_topic(
    source: ClusterAccess, topic: str, target: ClusterAccess, remote: str, within_s: float
) -> DemoCheckResult:
    """Compare two topics: records, their order, keys, values, headers, times, partitions."""
    expected = read_topic(source, topic, timeout_s=within_s)

    def copied() -> list[ConsumerRecord]:
        try:
            return read_topic(target, remote, timeout_s=within_s, new_topic_wait_s=0.0)
        except TopicMissing:
            return []

    copied_records = _poll_until(copied, lambda found: len(found) >= len(expected), within_s)
    same = list(map(_record_content, expected)) == list(map(_record_content, copied_records))
    detail = f"{len(expected):,} records at the source, {len(copied_records):,} on the target"
    return DemoCheckResult(
        subject=f"{topic} = {remote}",
        detail=f"{detail}, all equal" if same else f"{detail}: they differ",
        passed=same and bool(expected),
    )


def check_group_offsets(
    group: str,
    committed: Mapping[TopicPartition, int],
    source: ClusterAccess,
    target: ClusterAccess,
    remote: Callable[[str], str],
    within_s: float,
) -> DemoCheckResult:
    """Compare the next record of the group on both clusters: it must be the same."""
    expected = {
        TopicPartition(remote(p.topic), p.partition): at for p, at in committed.items() if at
    }
    positions = _poll_until(
        lambda: _committed_offsets(target, group),
        lambda found: all(found.get(p) == at for p, at in expected.items()),
        within_s,
    )
    next_there = _next_records(source, committed, within_s)
    next_here = _next_records(target, {p: positions.get(p, -1) for p in expected}, within_s)
    same = all(
        next_there.get(p) is not None
        and next_there.get(p) == next_here.get(TopicPartition(remote(p.topic), p.partition))
        for p, at in committed.items()
        if at
    )
    return DemoCheckResult(
        subject=f"group {group}",
        detail=f"continues at the same record in {len(expected)} partitions"
        if same
        else f"is at {_format_offsets(positions)} on the target",
        passed=same and bool(expected),
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
    poll: Callable[[], Seen], is_enough: Callable[[Seen], bool], within_s: float
) -> Seen:
    """Poll until `is_enough` or the timeout; return the last value."""
    deadline = time.monotonic() + within_s
    while True:
        seen = poll()
        if is_enough(seen) or time.monotonic() > deadline:
            return seen
        time.sleep(POLL_INTERVAL_S)
