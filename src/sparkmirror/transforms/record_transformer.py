"""Applies a chain to records as Kafka has them: read, transform, write.

    TO_CONNECT_HEADER, _KEY, _VALUE ─► TRANSFORMATION ─► HEADER_, KEY_, VALUE_CONVERTER
                                                         ─► PRODUCER_RECORD

Every record has one outcome: it is sent, dropped or failed. With `errors.tolerance=all` a record
that fails is dropped; a timestamp that a producer refuses fails in any case, as in Java. Data of
some hundred levels fails; Java's limit is a thousand. An exception that no stage declares fails its
record too, so that one record never ends a task.

A key or value that no stage writes keeps its bytes, and is not opened if no stage reads it. The
headers that a record comes with keep theirs: no transformation reads the value of a header. Java
reads and writes all parts of every record; `convert_all` does the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from sparkmirror.errors import TransformError
from sparkmirror.transforms.converters.converter import Converter
from sparkmirror.transforms.converters.formats import RecordConverters
from sparkmirror.transforms.data.java_exceptions import connect_exception, data_exception
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema, SchemaType
from sparkmirror.transforms.record import ConnectHeader, ConnectRecord, KafkaRecord
from sparkmirror.transforms.record_parts import adds_headers, chain_parts, header_names
from sparkmirror.transforms.static_route import record_routers
from sparkmirror.transforms.transformation import RecordPart
from sparkmirror.transforms.transformation_chain import TransformationChain

NO_TIMESTAMP: Final = -1
UNREAD: Final = Schema(SchemaType.BYTES, optional=True)
"""The schema, as an object, of parts that were not read: their bytes are written as they are."""


class ErrorStage(Enum):
    """Where a record failed, by Connect's names."""

    TO_CONNECT_HEADER = "TO_CONNECT_HEADER"
    TO_CONNECT_KEY = "TO_CONNECT_KEY"
    TO_CONNECT_VALUE = "TO_CONNECT_VALUE"
    TRANSFORMATION = "TRANSFORMATION"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    PRODUCER_RECORD = "PRODUCER_RECORD"


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that failed, where, and with which of Java's errors."""

    stage: ErrorStage
    error: TransformError


@dataclass(frozen=True, slots=True)
class DroppedRecord:
    """A record that is not sent. `tolerated` is why, if it failed and that is tolerated."""

    tolerated: FailedRecord | None = None


Outcome: TypeAlias = KafkaRecord | DroppedRecord | FailedRecord

_FILTERED: Final = DroppedRecord()


class RecordTransformer:
    """A chain with the converters before and behind it.

    `parts` are those that the chain touches, `header_names` those of headers that it asks for.
    `routes_records` is whether records of one topic may get different topics. A
    transformer keeps caches: one thread uses it, and a process that needs one compiles it from the
    config.
    """

    def __init__(
        self,
        chain: TransformationChain,
        source: RecordConverters,
        target: RecordConverters,
        *,
        tolerates_errors: bool = False,
        convert_all: bool = False,
    ) -> None:
        self.parts = chain_parts(chain)
        self.header_names = header_names(chain)
        self.adds_headers = adds_headers(chain)
        self.routes_records = bool(record_routers(chain))
        reads, writes = self.parts.reads, self.parts.writes
        self._chain = chain
        self._source = source
        self._target = target
        self._tolerates_errors = tolerates_errors
        self._reads_headers = convert_all
        self._ignores_headers = not convert_all and self.parts.ignores(RecordPart.HEADERS)
        self._reads_key = convert_all or RecordPart.KEY in reads
        self._reads_value = convert_all or RecordPart.VALUE in reads
        self._writes_key = convert_all or RecordPart.KEY in writes
        self._writes_value = convert_all or RecordPart.VALUE in writes

    def transform(self, record: KafkaRecord) -> Outcome:
        """The outcome of one record."""
        stage = ErrorStage.TO_CONNECT_HEADER
        try:
            headers = self._read_headers(record)
            stage = ErrorStage.TO_CONNECT_KEY
            key_schema, key = self._read_key(record)
            stage = ErrorStage.TO_CONNECT_VALUE
            value_schema, value = self._read_value(record)
            stage = ErrorStage.TRANSFORMATION
            transformed = self._chain.apply(
                ConnectRecord(
                    record.topic,
                    record.partition,
                    record.timestamp,
                    key_schema,
                    key,
                    value_schema,
                    value,
                    headers,
                )
            )
            if transformed is None:
                return _FILTERED
            stage = ErrorStage.HEADER_CONVERTER
            written_headers = self._write_headers(record, transformed)
            stage = ErrorStage.KEY_CONVERTER
            written_key = self._write_key(record, transformed)
            stage = ErrorStage.VALUE_CONVERTER
            written_value = self._write_value(record, transformed)
        except TransformError as error:
            return self._failed(stage, error)
        except RecursionError:
            return self._failed(stage, data_exception("The data is nested too deeply"))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  a defect must not end the task
            return self._failed(stage, connect_exception(f"Unexpected: {error!r}"))
        return _producer_record(transformed, written_key, written_value, written_headers)

    def _failed(self, stage: ErrorStage, error: TransformError) -> FailedRecord | DroppedRecord:
        failed = FailedRecord(stage, error)
        return DroppedRecord(failed) if self._tolerates_errors else failed

    def _read_headers(self, record: KafkaRecord) -> tuple[ConnectHeader, ...]:
        if self._ignores_headers:
            return ()
        if not self._reads_headers:
            return tuple([ConnectHeader(name, UNREAD, data) for name, data in record.headers])
        read = self._source.header.to_connect_data
        return tuple([ConnectHeader(name, *read(data)) for name, data in record.headers])

    def _write_headers(
        self, record: KafkaRecord, transformed: ConnectRecord
    ) -> tuple[tuple[str, bytes | None], ...]:
        if self._ignores_headers:
            return record.headers
        converter = self._target.header
        return tuple(
            [
                (name, value if schema is UNREAD else converter.from_connect_data(schema, value))
                for name, schema, value in transformed.headers
            ]
        )

    def _read_key(self, record: KafkaRecord) -> tuple[Schema | None, ConnectValue]:
        if self._reads_key:
            return self._source.key.to_connect_data(record.key)
        return UNREAD, record.key

    def _read_value(self, record: KafkaRecord) -> tuple[Schema | None, ConnectValue]:
        if self._reads_value:
            return self._source.value.to_connect_data(record.value)
        return UNREAD, record.value

    def _write_key(self, record: KafkaRecord, transformed: ConnectRecord) -> bytes | None:
        if self._writes_key:
            return _write(self._target.key, transformed.key_schema, transformed.key)
        return record.key

    def _write_value(self, record: KafkaRecord, transformed: ConnectRecord) -> bytes | None:
        if self._writes_value:
            return _write(self._target.value, transformed.value_schema, transformed.value)
        return record.value


def _write(converter: Converter, schema: Schema | None, value: ConnectValue) -> bytes | None:
    if schema is UNREAD:
        assert value is None or isinstance(value, bytes)
        return value
    return converter.from_connect_data(schema, value)


def _producer_record(
    record: ConnectRecord,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
) -> KafkaRecord | FailedRecord:
    timestamp = None if record.timestamp == NO_TIMESTAMP else record.timestamp
    if timestamp is not None and timestamp < 0:
        error = TransformError(
            "org.apache.kafka.common.InvalidRecordException",
            f"Invalid record timestamp {timestamp}",
        )
        return FailedRecord(ErrorStage.PRODUCER_RECORD, error)
    return KafkaRecord(record.topic, record.partition, timestamp, key, value, headers)
