"""What is asked of a short-lived Spark about a query, and its answer: each one line of JSON.

A request has records, so it travels through a pipe only.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sparkmirror.copy.task.transform.record_evaluator import (
    FailedRow,
    RecordRow,
    RoutedRecord,
    RowOutcome,
)
from sparkmirror.wire.batch.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """A query, and records to evaluate it on."""

    transforms: Mapping[str, str] = field(repr=False)
    """The keys of the query (`transforms.spark_query`)."""
    topic: str = ""
    rows: tuple[tuple[int, RecordRow], ...] = field(default=(), repr=False)
    """Partitions and records."""

    def to_line(self) -> bytes:
        """The request as one line."""
        rows = [[partition, row.timestamp_type, _parts(row.record)] for partition, row in self.rows]
        return _line({"transforms": dict(self.transforms), "topic": self.topic, "rows": rows})

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line of `to_line`."""
        value = json.loads(line)
        rows = tuple((p, RecordRow(_record(parts), kind)) for p, kind, parts in value["rows"])
        return cls(transforms=value["transforms"], topic=value["topic"], rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """Why the query cannot be used, or what it makes of the records."""

    error: str = ""
    routes_records: bool = False
    """Whether the query computes `topic`."""
    outcomes: tuple[RowOutcome, ...] = field(default=(), repr=False)

    def to_line(self) -> bytes:
        """The answer as one line."""
        return _line(
            {
                "error": self.error,
                "routes_records": self.routes_records,
                "outcomes": [_outcome_json(outcome) for outcome in self.outcomes],
            }
        )

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line of `to_line`."""
        value = json.loads(line)
        return cls(
            error=value["error"],
            routes_records=value["routes_records"],
            outcomes=tuple(map(_outcome, value["outcomes"])),
        )


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _outcome_json(outcome: RowOutcome) -> Any:
    if isinstance(outcome, FailedRow):
        return {"class": outcome.error_class, "message": outcome.message}
    if isinstance(outcome, RoutedRecord):
        return {"record": _parts(outcome.record), "topic": outcome.topic}
    return None if outcome is None else _parts(outcome)


def _outcome(value: Any) -> RowOutcome:
    if isinstance(value, dict) and "record" in value:
        return RoutedRecord(_record(value["record"]), value["topic"])
    if isinstance(value, dict):
        return FailedRow(value["class"], value["message"])
    return None if value is None else _record(value)


def _parts(record: Record) -> list[Any]:
    offset, timestamp, key, value, headers = record
    named = [[_text(name), _text(content)] for name, content in headers]
    return [offset, timestamp, _text(key), _text(value), named]


def _record(parts: list[Any]) -> Record:
    offset, timestamp, key, value, headers = parts
    named = tuple((_bytes(name) or b"", _bytes(content)) for name, content in headers)
    return Record(offset, timestamp, _bytes(key), _bytes(value), named)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
