"""InsertField: topic, partition, time or a fixed text as a field of the key or value."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.transforms.data.java_exceptions import config_exception, data_exception
from sparkmirror.transforms.data.java_values import ConnectValue, Date, Integer
from sparkmirror.transforms.data.logical_types import TIMESTAMP
from sparkmirror.transforms.data.schema import (
    INT32,
    INT64,
    STRING,
    Schema,
    optional_if,
    struct_schema,
)
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.field_values.requirements import require_map, require_struct
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_PURPOSE = "field insertion"


@dataclass(frozen=True, slots=True)
class InsertionSpec:
    """The name of a new field. Its schema is optional (`?`, the default) or required (`!`)."""

    name: str
    optional: bool


def parse_insertion_spec(text: str | None) -> InsertionSpec | None:
    """The spec that a text names; None for none."""
    if text is None:
        return None
    if text.endswith("?"):
        return InsertionSpec(text[:-1], optional=True)
    if text.endswith("!"):
        return InsertionSpec(text[:-1], optional=False)
    return InsertionSpec(text, optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertedFields:
    """The names of the fields, as the config has them."""

    topic: str | None = None
    partition: str | None = None
    offset: str | None = None
    timestamp: str | None = None
    static: str | None = None
    static_value: str | None = None


class InsertField(FieldTransformation):
    """Replaces fields that exist without schemas. A mirror's records have no offset to insert."""

    def __init__(
        self, part: RecordPart, fields: InsertedFields, *, replace_null_with_default: bool = True
    ) -> None:
        super().__init__(part, replace_null_with_default=replace_null_with_default)
        self._topic = parse_insertion_spec(fields.topic)
        self._partition = parse_insertion_spec(fields.partition)
        self._offset = parse_insertion_spec(fields.offset)
        self._timestamp = parse_insertion_spec(fields.timestamp)
        self._static = parse_insertion_spec(fields.static)
        self._static_value = fields.static_value
        specs = (self._topic, self._partition, self._offset, self._timestamp, self._static)
        if all(spec is None for spec in specs):
            raise config_exception("No field insertion configured")
        if self._static is not None and self._static_value is None:
            raise config_exception(
                "Invalid value null for configuration static.value: No value specified for static "
                "field: org.apache.kafka.connect.transforms.InsertField$InsertionSpec@0"
            )
        self._updated = SchemaCache(self._updated_schema)

    @property
    def reads(self) -> frozenset[RecordPart]:
        """The key or value, and what is inserted."""
        sources = {
            RecordPart.TOPIC: self._topic,
            RecordPart.PARTITION: self._partition,
            RecordPart.TIMESTAMP: self._timestamp,
        }
        return super().reads | {part for part, spec in sources.items() if spec is not None}

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the fields; a null key or value stays null."""
        value = self._operating_value(record)
        if value is None:
            return record
        schema = self._operating_schema(record)
        if schema is None:
            fields = dict(require_map(value, _PURPOSE))
            fields |= self._inserted(record, record.timestamp)
            return self._new_record(record, None, fields)
        struct = require_struct(value, _PURPOSE)
        updated = self._updated.get(schema)
        result = Struct(updated)
        for field in struct.schema.fields:
            result.put_by_name(field.name, self._field_value(struct, field))
        time = None if record.timestamp is None else Date(record.timestamp)
        for name, item in self._inserted(record, time).items():
            result.put_by_name(name, item)
        return self._new_record(record, updated, result)

    def _inserted(self, record: ConnectRecord, time: ConnectValue) -> dict[str, ConnectValue]:
        inserted: dict[str, ConnectValue] = {}
        if self._topic is not None:
            inserted[self._topic.name] = record.topic
        if self._partition is not None and record.partition is not None:
            inserted[self._partition.name] = Integer(record.partition)
        if self._offset is not None:
            raise data_exception(
                f"Only SinkRecord supported for [{_PURPOSE}], found: "
                "org.apache.kafka.connect.source.SourceRecord"
            )
        if self._timestamp is not None and time is not None:
            inserted[self._timestamp.name] = time
        if self._static is not None:
            inserted[self._static.name] = self._static_value
        return inserted

    def _updated_schema(self, schema: Schema) -> Schema:
        added = (
            (self._topic, STRING),
            (self._partition, INT32),
            (self._offset, INT64),
            (self._timestamp, TIMESTAMP),
            (self._static, STRING),
        )
        new_fields = (
            (spec.name, optional_if(new_schema, spec.optional))
            for spec, new_schema in added
            if spec is not None
        )
        old_fields = ((field.name, field.schema) for field in schema.fields)
        return struct_schema((*old_fields, *new_fields), basics=schema)
