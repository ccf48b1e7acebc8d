"""TimestampConverter: times as text, Unix time, Date, Time or Timestamp."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.data.java_exceptions import config_exception
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema, optional_if, struct_schema
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.dates.simple_date_format import SimpleDateFormat
from sparkmirror.transforms.field_values.requirements import require_map, require_struct_or_null
from sparkmirror.transforms.field_values.timestamp_types import (
    TYPE_SCHEMAS,
    TimestampTranslator,
    timestamp_type_from_schema,
    timestamp_type_of_value,
)
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_PURPOSE = "converting timestamp formats"


class TimestampConverter(FieldTransformation):
    """Converts one field, or the whole key or value if `field` is empty. Always in UTC."""

    def __init__(
        self,
        part: RecordPart,
        field: str,
        target_type: str,
        date_format: str,
        unix_precision: str,
        environment: JavaEnvironment,
        *,
        replace_null_with_default: bool = True,
    ) -> None:
        super().__init__(part, replace_null_with_default=replace_null_with_default)
        self._field = field
        self._target_type = target_type
        self._translator = TimestampTranslator(
            _compiled_format(target_type, date_format, environment.now_ms), unix_precision
        )
        self._updated = SchemaCache(self._updated_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the time converted; null stays null."""
        schema = self._operating_schema(record)
        value = self._operating_value(record)
        if schema is None:
            return self._new_record(record, None, self._without_schema(value))
        if not self._field:
            updated = self._type_schema(schema)
            found = timestamp_type_from_schema(schema)
            return self._new_record(record, updated, self._convert(value, found))
        struct = require_struct_or_null(value, _PURPOSE)
        updated = self._updated.get(schema)
        return self._new_record(record, updated, self._with_schema(struct, updated))

    def _without_schema(self, value: ConnectValue) -> ConnectValue:
        if value is None or not self._field:
            return self._convert(value, None)
        fields = require_map(value, _PURPOSE)
        return {**fields, self._field: self._convert(fields.get(self._field), None)}

    def _with_schema(self, struct: Struct | None, updated: Schema) -> Struct | None:
        if struct is None:
            return None
        result = Struct(updated)
        for field, new_field in zip(struct.schema.fields, updated.fields, strict=True):
            item = self._field_value(struct, field)
            if field.name == self._field:
                item = self._convert(item, timestamp_type_from_schema(field.schema))
            result.put(new_field, item)
        return result

    def _convert(self, value: ConnectValue, found_type: str | None) -> ConnectValue:
        if value is None:
            return None
        found = timestamp_type_of_value(value) if found_type is None else found_type
        return self._translator.to_type(self._translator.to_raw(value, found), self._target_type)

    def _type_schema(self, schema: Schema) -> Schema:
        return optional_if(TYPE_SCHEMAS[self._target_type], schema.optional)

    def _updated_schema(self, schema: Schema) -> Schema:
        updated = struct_schema(
            (
                (
                    field.name,
                    self._type_schema(field.schema) if field.name == self._field else field.schema,
                )
                for field in schema.fields
            ),
            basics=schema,
        )
        updated = optional_if(updated, schema.optional)
        if schema.default is None:
            return updated
        return replace(updated, default=self._with_schema(schema.default, updated))


def _compiled_format(target_type: str, pattern: str, now_ms: int) -> SimpleDateFormat | None:
    if not pattern.strip():
        if target_type == "string":
            raise config_exception(
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
        return None
    try:
        return SimpleDateFormat(pattern, now_ms=now_ms)
    except TransformError as error:
        raise config_exception(
            f"Invalid value {error.java_class}: {error} for configuration TimestampConverter "
            f"requires a SimpleDateFormat-compatible pattern for string timestamps: {pattern}"
        ) from error
