"""HoistField: the whole key or value becomes the one field of an object."""

from __future__ import annotations

from sparkmirror.transforms.data.schema import Schema, struct_schema
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart


class HoistField(FieldTransformation):
    """Wraps the key or value."""

    def __init__(self, part: RecordPart, field: str) -> None:
        super().__init__(part)
        self._field = field
        self._updated = SchemaCache(self._updated_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the object."""
        schema = self._operating_schema(record)
        value = self._operating_value(record)
        if schema is None:
            return self._new_record(record, None, {self._field: value})
        updated = self._updated.get(schema)
        struct = Struct(updated)
        struct.put(updated.fields[0], value)
        return self._new_record(record, updated, struct)

    def _updated_schema(self, schema: Schema) -> Schema:
        return struct_schema([(self._field, schema)])
