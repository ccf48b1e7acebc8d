"""A record before and after the transformations, as text and as JSON. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sparkmirror.model import TopicPartition
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import DroppedRecord, FailedRecord, Outcome

MAX_TEXT: Final = 400
"""Longer keys, values and headers are cut in the text output. The JSON output has all of them."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NULL: Final = "null"
_ARROW: Final = "->"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRecord:
    """A record of the source, as the transformations got it, and what became of it."""

    source: TopicPartition
    offset: int
    before: KafkaRecord
    outcome: Outcome
    dead_letter_topic: str = ""
    """Where records go that fail and are tolerated; empty if nowhere."""

    @property
    def after(self) -> KafkaRecord | None:
        """The record that a mirror would write; None if it would write none."""
        return self.outcome if isinstance(self.outcome, KafkaRecord) else None

    @property
    def failure(self) -> FailedRecord | None:
        """Where and why the record failed; None if it did not."""
        if isinstance(self.outcome, DroppedRecord):
            return self.outcome.tolerated
        return self.outcome if isinstance(self.outcome, FailedRecord) else None

    @property
    def result(self) -> str:
        """What becomes of the record: sent, dropped or held."""
        if isinstance(self.outcome, FailedRecord):
            return "held"
        return "dropped" if isinstance(self.outcome, DroppedRecord) else "sent"

    @property
    def dead_letter(self) -> str:
        """The topic that gets the record unchanged because it failed; empty if none does."""
        is_tolerated = isinstance(self.outcome, DroppedRecord) and self.outcome.tolerated
        return self.dead_letter_topic if is_tolerated else ""

    def text_lines(self) -> Iterator[str]:
        """Yield the lines for a terminal: a part that changes has two."""
        after = self.after
        yield f"{self.source} offset {self.offset}: {self.result}"
        old = _texts(self.before)
        new = old if after is None else _texts(after)
        for name, text in old.items():
            yield f"  {name:<8} {text}"
            if new[name] != text:
                yield f"  {_ARROW:>8} {new[name]}"
        if self.failure is not None:
            yield f"  {'error':<8} {failure_text(self.failure)}"
        if self.dead_letter:
            yield f"  {'letter':<8} {self.dead_letter}"

    def json_object(self) -> dict[str, Any]:
        """Return the members for programs. A part that is not UTF-8 is an object with base64."""
        failure = self.failure
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "offset": self.offset,
            "result": self.result,
            "before": _members(self.before),
            "after": None if self.after is None else _members(self.after),
            "error": None
            if failure is None
            else {
                "stage": failure.stage.value,
                "class": failure.error.java_class,
                "message": str(failure.error),
            },
            "dead_letter": self.dead_letter or None,
        }


def failure_text(failure: FailedRecord) -> str:
    """Where and why a record failed, in one line."""
    error = failure.error
    where = (
        f"{failure.stage.value} by transforms.{error.alias}"
        if error.alias
        else (failure.stage.value)
    )
    return _printable(f"{where}: {error.java_class}: {error}")


def _texts(record: KafkaRecord) -> dict[str, str]:
    headers = ", ".join(f"{_printable(name)}: {_text(value)}" for name, value in record.headers)
    return {
        "topic": _printable(record.topic),
        "time": _time_text(record.timestamp),
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": headers or "none",
    }


def _text(data: bytes | None) -> str:
    if data is None:
        return _NULL
    try:
        text = _printable(data.decode())
    except UnicodeDecodeError:
        text = data[:MAX_TEXT].hex(" ")
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(data)} bytes)"


def _printable(text: str) -> str:
    """Escape control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _time_text(timestamp_ms: int | None) -> str:
    if timestamp_ms is None or timestamp_ms < 0:
        return "none"
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return str(timestamp_ms)


def _members(record: KafkaRecord) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "timestamp": record.timestamp,
        "key": _json_value(record.key),
        "value": _json_value(record.value),
        "headers": [[name, _json_value(value)] for name, value in record.headers],
    }


def _json_value(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
