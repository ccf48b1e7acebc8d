"""HeaderFrom: fields become headers, copied or moved."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.transforms.data.java_exceptions import config_exception, null_pointer_exception
from sparkmirror.transforms.data.schema import Schema, struct_schema
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.field_values.requirements import require_map, require_struct
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectHeader, ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_HEADERS = frozenset({RecordPart.HEADERS})


class HeaderFrom(FieldTransformation):
    """Appends the headers. A field that is absent is a null header, or an error with schemas."""

    def __init__(
        self,
        part: RecordPart,
        fields: Sequence[str],
        headers: Sequence[str],
        operation: str,
        *,
        replace_null_with_default: bool = True,
    ) -> None:
        super().__init__(part, replace_null_with_default=replace_null_with_default)
        if len(fields) != len(headers):
            raise config_exception(
                "'fields' config must have the same number of elements as 'headers' config."
            )
        self._names = tuple(zip(fields, headers, strict=True))
        self._moved = frozenset(fields) if operation == "move" else frozenset()
        self._purpose = f"header {operation}"
        self._remaining = SchemaCache(self._remaining_schema)

    @property
    def writes(self) -> frozenset[RecordPart]:
        """The headers, and the key or value if fields are moved."""
        return _HEADERS | super().writes if self._moved else _HEADERS

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the headers behind its own."""
        schema = self._operating_schema(record)
        value = self._operating_value(record)
        if schema is None:
            fields = require_map(value, self._purpose)
            added = [ConnectHeader(name, None, fields.get(field)) for field, name in self._names]
        else:
            struct = require_struct(value, self._purpose)
            added = [self._header(schema, struct, *names) for names in self._names]
        extended = record._replace(headers=(*record.headers, *added))
        if not self._moved:
            return extended
        if schema is None:
            remaining = {key: item for key, item in value.items() if key not in self._moved}
            return self._new_record(extended, None, remaining)
        updated = self._remaining.get(schema)
        return self._new_record(extended, updated, self._remaining_struct(value, updated))

    def _remaining_struct(self, struct: Struct, updated: Schema) -> Struct:
        result = Struct(updated)
        for field in updated.fields:
            result.put(field, self._field_value(struct, struct.field(field.name)))
        return result

    def _header(self, schema: Schema, struct: Struct, field_name: str, name: str) -> ConnectHeader:
        field = schema.field(field_name)
        if field is None:
            raise null_pointer_exception(f"The schema has no field {field_name}")
        return ConnectHeader(name, field.schema, self._field_value(struct, field))

    def _remaining_schema(self, schema: Schema) -> Schema:
        kept = [field for field in schema.fields if field.name not in self._moved]
        return struct_schema(((field.name, field.schema) for field in kept), basics=schema)
