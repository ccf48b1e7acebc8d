"""The JSON of partitions, events and groups, of one worker or of all workers of a group."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.connect.herder.mirror_monitor_api import (
    MirrorEvent,
    MirrorMonitor,
    MirrorPartitionStatus,
)
from sparkmirror.copy.snapshot import total_lag

JsonItem: TypeAlias = dict[str, Any]
UNREACHABLE = "unreachable_workers"
"""Workers of the group that did not answer, with the reason. Left out if all did."""


def partition_items(monitor: MirrorMonitor, name: str) -> list[JsonItem]:
    """The partitions of a source connector that this worker copies."""
    return [_partition_json(status) for status in monitor.partitions(name)]


def event_items(monitor: MirrorMonitor, name: str) -> list[JsonItem]:
    """The latest events of those partitions."""
    return [_event_json(event) for event in monitor.events(name)]


def group_items(monitor: MirrorMonitor, name: str, group: str | None) -> list[JsonItem]:
    """What the checkpoint tasks of this worker know; of one group, or of all."""
    return [_group_json(report) for report in monitor.groups(name) if group in (None, report.group)]


def partitions_answer(name: str, items: Sequence[JsonItem], absent: Mapping[str, str]) -> JsonItem:
    """All partitions with their sums. The lag is unknown while a worker does not answer."""
    is_known = items and not absent
    return {
        "name": name,
        "records": sum(item["records"] for item in items),
        "bytes": sum(item["bytes"] for item in items),
        "lag": total_lag(item["lag"] for item in items) if is_known else None,
        "partitions": list(items),
        **_unreachable(absent),
    }


def events_answer(name: str, items: Sequence[JsonItem], absent: Mapping[str, str]) -> JsonItem:
    """All events, oldest first."""
    ordered = sorted(items, key=lambda item: str(item["time"]))
    return {"name": name, "events": ordered, **_unreachable(absent)}


def groups_answer(name: str, items: Sequence[JsonItem], absent: Mapping[str, str]) -> JsonItem:
    """The offsets of all groups."""
    return {"name": name, "groups": list(items), **_unreachable(absent)}


def merge_partitions(
    items_by_worker: Mapping[str, Iterable[JsonItem]], find_owner: Callable[[int], str]
) -> list[JsonItem]:
    """Return every partition once, in order.

    A partition that has just moved may be known to two workers: the one that runs its task counts,
    else the first.
    """
    found: dict[tuple[str, int], tuple[bool, JsonItem]] = {}
    owner_of = functools.cache(find_owner)  # a task has thousands of partitions
    for worker, items in items_by_worker.items():
        for item in items:
            key = (item["topic"], item["partition"])
            is_owner = owner_of(item["task"]) == worker
            if key not in found or (is_owner and not found[key][0]):
                found[key] = (is_owner, item)
    return [found[key][1] for key in sorted(found)]


def _unreachable(absent: Mapping[str, str]) -> JsonItem:
    return {UNREACHABLE: dict(sorted(absent.items()))} if absent else {}


def _partition_json(status: MirrorPartitionStatus) -> JsonItem:
    return {
        "topic": status.topic,
        "partition": status.partition,
        "remote_topic": status.remote_topic,
        "task": status.task,
        "state": status.state,
        "position": status.position,
        "end": status.end,
        "lag": status.lag,
        "records": status.records,
        "bytes": status.bytes,
        "reason": status.reason,
        "delivery": status.delivery,
        "filtered": status.filtered,
        "skipped": status.skipped,
        "dead_letters": status.dead_letters,
    }


def _event_json(event: MirrorEvent) -> JsonItem:
    at = datetime.fromtimestamp(event.at_ms / 1000, UTC)
    return {
        "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "kind": event.kind,
        "topic": event.topic,
        "partition": event.partition,
        "text": event.text,
        "lost_from": event.lost_from,
        "lost_to": event.lost_to,
    }


def _group_json(report: GroupPartitionReport) -> JsonItem:
    remote = None
    if report.remote is not None:
        remote = {"topic": report.remote.topic, "partition": report.remote.partition}
    return {
        "group": report.group,
        "topic": report.partition.topic,
        "partition": report.partition.partition,
        "remote": remote,
        "upstream": report.upstream,
        "downstream": report.downstream,
        "translated": report.translated,
        "checkpoint": report.checkpoint,
        "written": report.written,
    }
