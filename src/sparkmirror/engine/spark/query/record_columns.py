"""Records as Arrow columns, and Arrow columns as parts of records.

`headers` is a map. Of headers with the same name it has the last one, as Kafka's `lastHeader`.
Names that are not UTF-8 get replacement characters. A part that a query does not change is not
taken from here: it keeps its bytes, all its headers and their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import pyarrow
import pyarrow.compute

from sparkmirror.copy.task.transform.record_evaluator import RecordRow
from sparkmirror.wire.batch.records import RecordHeader

pa: Any = pyarrow
"""pyarrow has no types."""
ArrowArray: TypeAlias = Any
"""A pyarrow.Array."""

RECORD_SCHEMA: Final = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestamp_type int,"
    " key binary, value binary, headers map<string, binary>"
)
COLUMNS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
)
_MAP: Final = pa.map_(pa.string(), pa.binary())
_BINARY_MAP: Final = pa.map_(pa.binary(), pa.binary())
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_US: Final = 1000
_MAX_MS: Final = (1 << 63) // _US - 1
NO_TIMESTAMP: Final = -1


def to_arrow(name: str, topic: str, partition: int, rows: Sequence[RecordRow]) -> ArrowArray:
    """Return a column of records."""
    count = len(rows)
    match name:
        case "topic":
            return pa.repeat(pa.scalar(topic, pa.string()), count)
        case "partition":
            return pa.repeat(pa.scalar(partition, pa.int32()), count)
        case "offset":
            return pa.array([row.record.offset for row in rows], pa.int64())
        case "timestamp":
            times = [_microseconds(row.record.timestamp) for row in rows]
            return pa.array(times, pa.int64()).cast(_TIMESTAMP)
        case "timestamp_type":
            return pa.array([row.timestamp_type for row in rows], pa.int32())
        case "key":
            return pa.array([row.record.key for row in rows], pa.binary())
        case "value":
            return pa.array([row.record.value for row in rows], pa.binary())
    assert name == "headers", name
    return pa.array([_map_entries(row.record.headers) for row in rows], _MAP)


def _microseconds(timestamp_ms: int) -> int | None:
    """The time for Spark; none for a record without one. The largest times are cut."""
    return None if timestamp_ms == NO_TIMESTAMP else min(timestamp_ms, _MAX_MS) * _US


def _map_entries(headers: Sequence[RecordHeader]) -> list[tuple[str, bytes | None]]:
    return list({name.decode("utf-8", "replace"): value for name, value in headers}.items())


def to_bytes(column: ArrowArray) -> list[bytes | None]:
    """Keys or values of a column of bytes or text."""
    if pa.types.is_null(column.type):
        return [None] * len(column)
    values: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return values


def to_texts(column: ArrowArray) -> list[str | None]:
    """Texts of a column of them. Spark casts any bytes to text: those that are not UTF-8 get
    replacement characters.
    """
    return [None if value is None else _text(value) for value in to_bytes(column)]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def to_timestamps(column: ArrowArray) -> list[int]:
    """Milliseconds of a column of timestamps; -1 for null."""
    times: list[int | None] = column.cast(pa.int64()).to_pylist()
    return [NO_TIMESTAMP if time is None else time // _US for time in times]


def to_headers(column: ArrowArray) -> list[tuple[RecordHeader, ...]]:
    """Headers of a column of maps; none for null."""
    if pa.types.is_null(column.type):
        return [()] * len(column)
    cells: list[list[RecordHeader] | None] = column.cast(_BINARY_MAP).to_pylist()
    return [() if cell is None else tuple(cell) for cell in cells]
