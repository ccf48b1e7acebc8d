"""The bytes that members of a worker group exchange through Kafka's group protocol. Pure.

Compressed JSON with a version. A version above our own belongs to a newer worker, whose state this
one may misread.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.worker_state import STATE_VERSION, WorkerState
from sparkmirror.errors import NewerWorker, RecordError

MAX_SIZE = 64 * 1024 * 1024
"""The largest JSON text that a member may send, decompressed."""


def encode_state(state: WorkerState) -> bytes:
    """Return the metadata of a member that joins."""
    return _pack(
        {
            "version": state.state_version,
            "worker_id": state.worker_id,
            "url": state.url,
            "config_offset": state.config_offset,
            **_encode_work(state.connectors, state.tasks),
        }
    )


def decode_state(data: bytes) -> WorkerState | None:
    """Return the state of a member; None if it is a worker of a version without shares.

    Raises NewerWorker, or RecordError for bytes of another program.
    """
    if not data:
        return None
    fields = _unpack(data)
    try:
        connectors, tasks = _decode_work(fields)
        return WorkerState(
            worker_id=str(fields["worker_id"]),
            url=str(fields["url"]),
            config_offset=int(fields["config_offset"]),
            connectors=connectors,
            tasks=tasks,
            state_version=int(fields["version"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"the state of a worker lacks a field: {error!r}") from error


def encode_assignment(assignment: Assignment) -> bytes:
    """Return what the leader sends to one member. The member knows its own id."""
    return _pack(
        {
            "version": STATE_VERSION,
            "generation": assignment.generation,
            "leader": assignment.leader_id,
            "config_offset": assignment.config_offset,
            "task_counts": dict(sorted(assignment.task_counts.items())),
            "shares": {
                member: {
                    "worker_id": share.worker_id,
                    "url": share.url,
                    **_encode_work(share.connectors, share.tasks),
                }
                for member, share in sorted(assignment.shares.items())
            },
            "revoked": _encode_work(assignment.revoked_connectors, assignment.revoked_tasks),
            "delay_ms": assignment.delay_ms,
        }
    )


def decode_assignment(data: bytes, member_id: str) -> Assignment | None:
    """Return the assignment of a member; None if the leader is of a version without shares.

    Raises NewerWorker, or RecordError for bytes of another program.
    """
    if not data:
        return None
    fields = _unpack(data)
    try:
        revoked_connectors, revoked_tasks = _decode_work(fields["revoked"])
        return Assignment(
            generation=int(fields["generation"]),
            member_id=member_id,
            leader_id=str(fields["leader"]),
            config_offset=int(fields["config_offset"]),
            shares={str(member): _decode_share(one) for member, one in fields["shares"].items()},
            task_counts={str(name): int(count) for name, count in fields["task_counts"].items()},
            revoked_connectors=revoked_connectors,
            revoked_tasks=revoked_tasks,
            delay_ms=int(fields["delay_ms"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise RecordError(f"the assignment of a worker group is incomplete: {error!r}") from error


def _decode_share(fields: Mapping[str, Any]) -> MemberShare:
    connectors, tasks = _decode_work(fields)
    return MemberShare(
        worker_id=str(fields["worker_id"]),
        url=str(fields["url"]),
        connectors=connectors,
        tasks=tasks,
    )


def _encode_work(connectors: Iterable[str], tasks: Iterable[ConnectorTaskId]) -> dict[str, Any]:
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for task in sorted(tasks):
        numbers[task.connector].append(task.task)
    return {"connectors": sorted(connectors), "tasks": numbers}


def _decode_work(fields: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[ConnectorTaskId]]:
    tasks = frozenset(
        ConnectorTaskId(connector=str(connector), task=int(number))
        for connector, numbers in fields["tasks"].items()
        for number in numbers
    )
    return frozenset(map(str, fields["connectors"])), tasks


def _pack(fields: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(fields, separators=(",", ":")).encode())


def _unpack(data: bytes) -> dict[str, Any]:
    """Return the fields. Raises NewerWorker or RecordError."""
    decompressor = zlib.decompressobj()
    try:
        text = decompressor.decompress(data, MAX_SIZE)
        if decompressor.unconsumed_tail:
            raise RecordError(f"a worker of the group sent more than {MAX_SIZE} bytes")
        fields = json.loads(text)
    except (zlib.error, ValueError, RecursionError) as error:
        raise RecordError(f"a worker of the group sent unknown bytes: {error}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("version"), int):
        raise RecordError("a worker of the group sent JSON without a version")
    if fields["version"] > STATE_VERSION:
        raise NewerWorker(str(fields.get("worker_id", "the leader")), fields["version"])
    return fields
