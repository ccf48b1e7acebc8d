"""What is logged and written about a record that failed: Connect's texts and header names. Pure.

Keys and values are never logged. The topic for failed records, Connect's dead letter queue, gets
the record as it was read, with headers about its origin if the connector asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Self

from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import Props, trim
from sparkmirror.config.tables.transform_additions import TRANSFORM_ADDITIONS, format_key
from sparkmirror.errors import TransformError
from sparkmirror.model import TopicPartition
from sparkmirror.transforms.configuration.error_settings import FailedRecordsTopic
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import ErrorStage, FailedRecord

LOG_INTERVAL_S: Final = 1.0
"""A partition gets at most one log line in this time."""
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
    offset: int
    timestamp_ms: int


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
    origin: RecordOrigin, failed: FailedRecord, classes: ExecutingClasses, *, names_record: bool
) -> str:
    """Connect's log line about a record that failed (`errors.log.enable`), with the error behind.

    `names_record` is `errors.log.include.messages`.
    """
    record = ""
    if names_record:
        record = (
            f", where consumed record is {{topic='{origin.partition.topic}', "
            f"partition={origin.partition.partition}, offset={origin.offset}, "
            f"timestamp={origin.timestamp_ms}}}"
        )
    return (
        f"Error encountered in task {origin.connector}-{origin.task}. "
        f"Executing stage '{failed.stage.value}' with class '{classes.failing_class(failed)}'"
        f"{record}. {' Caused by: '.join(_error_texts(failed.error))}"
    )


@dataclass(slots=True)
class ErrorLogLimit:
    """Decides which failed records are logged, so that a topic of bad records fills no disk."""

    clock: Callable[[], float]
    _next_at: dict[TopicPartition, float] = field(default_factory=dict)
    _left_out: dict[TopicPartition, int] = field(default_factory=dict)

    def admit(self, partition: TopicPartition) -> int | None:
        """Return how many records of the partition were not logged since its last line.

        None if this one is not logged either.
        """
        now = self.clock()
        if now < self._next_at.get(partition, now):
            self._left_out[partition] = self._left_out.get(partition, 0) + 1
            return None
        self._next_at[partition] = now + LOG_INTERVAL_S
        return self._left_out.pop(partition, 0)

    def forget(self, partition: TopicPartition) -> None:
        """Forget a partition that the task no longer copies."""
        self._next_at.pop(partition, None)
        self._left_out.pop(partition, None)


def failed_record(
    record: KafkaRecord,
    origin: RecordOrigin,
    failed: FailedRecord,
    classes: ExecutingClasses,
    topic: FailedRecordsTopic,
) -> KafkaRecord:
    """The record for the topic of failed records. `record` is the one of the source, as read."""
    context = tuple(_context_headers(origin, failed, classes)) if topic.has_context_headers else ()
    return KafkaRecord(
        topic.name,
        None,
        record.timestamp,
        record.key,
        record.value,
        (*record.headers, *context),
    )


def _context_headers(
    origin: RecordOrigin, failed: FailedRecord, classes: ExecutingClasses
) -> Iterator[tuple[str, bytes]]:
    """Yield the headers of Connect's DeadLetterQueueReporter. There is no Java stack trace."""
    texts = {
        "topic": origin.partition.topic,
        "partition": str(origin.partition.partition),
        "offset": str(origin.offset),
        "connector.name": origin.connector,
        "task.id": str(origin.task),
        "stage": failed.stage.value,
        "class.name": classes.failing_class(failed),
        "exception.class.name": failed.error.java_class,
        "exception.message": str(failed.error),
    }
    for name, text in texts.items():
        yield _HEADER_PREFIX + name, text.encode("utf-8", "replace")


def _error_texts(error: TransformError | None) -> Iterator[str]:
    """Yield the error and its causes, each with its Java class."""
    while error is not None:
        yield f"{error.java_class}: {error}"
        error = error.java_cause
