"""ValueToKey: fields of the value become the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.schema import Schema, SchemaField, struct_schema
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.field_values.requirements import require_map, require_struct
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_PURPOSE: Final = "copying fields from value to key"


class ValueToKey:
    """The key is an object of the fields, in their order."""

    reads = frozenset({RecordPart.VALUE})
    writes = frozenset({RecordPart.KEY})
    drops = False

    def __init__(self, fields: Sequence[str], *, replace_null_with_default: bool = True) -> None:
        self._fields = tuple(fields)
        self._replace_null_with_default = replace_null_with_default
        self._key_schemas = SchemaCache(self._key_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with its new key."""
        if record.value_schema is None:
            fields = require_map(record.value, _PURPOSE)
            key = {name: fields.get(name) for name in self._fields}
            return record._replace(key_schema=None, key=key)
        value = require_struct(record.value, _PURPOSE)
        key_schema = self._key_schemas.get(value.schema)
        struct = Struct(key_schema)
        for field in key_schema.fields:
            old = _existing_field(value.schema, field.name)
            struct.put(
                field,
                value.get(old)
                if self._replace_null_with_default
                else value.get_without_default(old),
            )
        return record._replace(key_schema=key_schema, key=struct)

    def _key_schema(self, schema: Schema) -> Schema:
        return struct_schema((name, _existing_field(schema, name).schema) for name in self._fields)


def _existing_field(schema: Schema, name: str) -> SchemaField:
    field = schema.field(name)
    if field is None:
        raise data_exception(f"Field does not exist: {name}")
    return field
