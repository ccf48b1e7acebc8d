"""What is logged and written about a record that failed: Connect's texts and header names. Pure.

The topic for failed records, Connect's dead letter queue, gets the record as it was read, with
headers about its origin if the connector asks for them. There is no Java stack trace: its header
has the error and its causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Self

from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import Props, trim
from sparkmirror.config.tables.transform_additions import TRANSFORM_ADDITIONS, format_key
from sparkmirror.errors import TransformError
from sparkmirror.model import TopicPartition
from sparkmirror.transforms.record_transformer import ErrorStage, FailedRecord
from sparkmirror.wire.batch.records import Record

MAX_LOGGED_BYTES: Final = 1000
"""Longer keys, values and headers are cut in log lines."""
_HEADER_PREFIX: Final = "__connect.errors."
_CONVERTERS: Final = {
    "bytes": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "json": "org.apache.kafka.connect.json.JsonConverter",
    "json-with-schema": "org.apache.kafka.connect.json.JsonConverter",
    "string": "org.apache.kafka.connect.storage.StringConverter",
}
_PARTS: Final = {
    ErrorStage.TO_CONNECT_HEADER: "header",
    ErrorStage.HEADER_CONVERTER: "header",
    ErrorStage.TO_CONNECT_KEY: "key",
    ErrorStage.KEY_CONVERTER: "key",
    ErrorStage.TO_CONNECT_VALUE: "value",
    ErrorStage.VALUE_CONVERTER: "value",
}
_PRODUCER: Final = "org.apache.kafka.clients.producer.KafkaProducer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOrigin:
    """Where a record was read, and by which task."""

    connector: str
    task: int
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class ExecutingClasses:
    """The Java class that fails at each stage, by the connector's config."""

    transformations: dict[str, str] = field(repr=False)
    """By alias."""
    converters: dict[str, str] = field(repr=False)
    """By `key`, `value` and `header`."""

    @classmethod
    def from_config(cls, props: Props) -> Self:
        """Read a valid config."""
        formats = TRANSFORM_ADDITIONS.parse(props)
        types = {
            key.removeprefix("transforms.").removesuffix(".type"): trim(text or "")
            for key, text in props.items()
            if key.startswith("transforms.") and key.endswith(".type")
        }
        return cls(
            {alias: resolve_class(name) or name for alias, name in types.items()},
            {part: _CONVERTERS[str(formats[format_key(part)])] for part in _PARTS.values()},
        )

    def failing_class(self, failed: FailedRecord) -> str:
        """The class at which a record failed."""
        if failed.stage is ErrorStage.TRANSFORMATION:
            return self.transformations.get(failed.error.alias, "null")
        part = _PARTS.get(failed.stage)
        return _PRODUCER if part is None else self.converters[part]


def log_text(
    origin: RecordOrigin,
    record: Record,
    failed: FailedRecord,
    classes: ExecutingClasses,
    *,
    with_contents: bool,
) -> str:
    """Connect's log line about a record that failed (`errors.log.enable`), with the error behind.

    `with_contents` is `errors.log.include.messages`. Without it the causes of the error are left
    out, too: they may quote the record.
    """
    topic, partition = origin.partition
    parts = [
        f"topic='{topic}'",
        f"partition={partition}",
        f"offset={record.offset}",
        f"timestamp={record.timestamp}",
    ]
    errors = list(_error_texts(failed.error))[: None if with_contents else 1]
    if with_contents:
        names = ", ".join(f"{_shown(name)}: {_shown(content)}" for name, content in record.headers)
        parts += [f"key={_shown(record.key)}", f"value={_shown(record.value)}"]
        parts.append(f"headers={{{names}}}")
    alias = f" (transforms.{failed.error.alias})" if failed.error.alias else ""
    return (
        f"Error encountered in task {origin.connector}-{origin.task}. "
        f"Executing stage '{failed.stage.value}' with class '{classes.failing_class(failed)}'"
        f"{alias}, where source record is {{{', '.join(parts)}}}. {' Caused by: '.join(errors)}"
    )


def context_headers(
    origin: RecordOrigin, offset: int, failed: FailedRecord, classes: ExecutingClasses
) -> tuple[tuple[bytes, bytes | None], ...]:
    """The headers of Connect's DeadLetterQueueReporter."""
    topic, partition = origin.partition
    texts = {
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
        "connector.name": origin.connector,
        "task.id": str(origin.task),
        "stage": failed.stage.value,
        "class.name": classes.failing_class(failed),
        "exception.class.name": failed.error.java_class,
        "exception.message": str(failed.error),
        "exception.stacktrace": "\nCaused by: ".join(_error_texts(failed.error)),
    }
    return tuple(
        (f"{_HEADER_PREFIX}{name}".encode(), text.encode("utf-8", "replace"))
        for name, text in texts.items()
    )


def _shown(data: bytes | None) -> str:
    """Key, value or header in a log line: in quotes, without control characters."""
    if data is None:
        return "null"
    text = ascii(data[:MAX_LOGGED_BYTES].decode("utf-8", "backslashreplace"))
    return text if len(data) <= MAX_LOGGED_BYTES else f"{text}... ({len(data)} bytes)"


def _error_texts(error: TransformError | None) -> Iterator[str]:
    """Yield the error and its causes, each with its Java class."""
    while error is not None:
        yield f"{error.java_class}: {error}"
        error = error.java_cause
