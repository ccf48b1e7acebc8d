"""SetSchemaMetadata: another name or version for the schema."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.transforms.data.java_exceptions import config_exception, data_exception
from sparkmirror.transforms.data.schema import Schema, SchemaType
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart


class SetSchemaMetadata(FieldTransformation):
    """Works on the schemas of structs only, as in Java."""

    def __init__(
        self,
        part: RecordPart,
        schema_name: str | None,
        schema_version: int | None,
        *,
        replace_null_with_default: bool = True,
    ) -> None:
        super().__init__(part, replace_null_with_default=replace_null_with_default)
        if schema_name is None and schema_version is None:
            raise config_exception("Neither schema name nor version configured")
        self._schema_name = schema_name
        self._schema_version = schema_version
        self._updated = SchemaCache(self._updated_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the schema's new name and version."""
        schema = self._operating_schema(record)
        value = self._operating_value(record)
        if schema is None:
            if value is None:
                return record
            raise data_exception("Schema required for [updating schema metadata]")
        updated = self._updated.get(schema)
        if not isinstance(value, Struct):
            return self._new_record(record, updated, value)
        result = Struct(updated)
        for field in updated.fields:
            result.put(field, self._field_value(value, field))
        return self._new_record(record, updated, result)

    def _updated_schema(self, schema: Schema) -> Schema:
        if schema.type is not SchemaType.STRUCT:
            raise data_exception("Cannot list fields on non-struct type")
        name = schema.name if self._schema_name is None else self._schema_name
        version = schema.version if self._schema_version is None else self._schema_version
        return replace(schema, name=name, version=version)
