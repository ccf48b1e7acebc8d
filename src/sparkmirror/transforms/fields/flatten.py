"""Flatten: nested fields become fields of the outermost object, with joined names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sparkmirror.transforms.data.hash_map_order import hash_map_order
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_values import ConnectValue, class_name
from sparkmirror.transforms.data.schema import Schema, SchemaType, struct_schema
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct, schema_type
from sparkmirror.transforms.field_values.requirements import require_map, require_struct
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_PURPOSE: Final = "flattening"
_KEPT: Final = frozenset(SchemaType) - {SchemaType.MAP, SchemaType.STRUCT}


class Flatten(FieldTransformation):
    """Empty objects vanish. Arrays are kept as they are."""

    def __init__(self, part: RecordPart, delimiter: str) -> None:
        super().__init__(part)
        self._delimiter = delimiter
        self._updated = SchemaCache(self._updated_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record, flattened."""
        value = self._operating_value(record)
        if value is None:
            return record
        schema = self._operating_schema(record)
        if schema is None:
            flat: dict[str, ConnectValue] = {}
            self._flatten_map(require_map(value, _PURPOSE), "", flat)
            return self._new_record(record, None, flat)
        struct = require_struct(value, _PURPOSE)
        updated = self._updated.get(schema)
        result = Struct(updated)
        for field, item in zip(
            updated.fields, self._leaf_values(struct.schema, struct), strict=True
        ):
            result.put(field, item)
        return self._new_record(record, updated, result)

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _flatten_map(
        self, fields: dict[str, ConnectValue], prefix: str, flat: dict[str, ConnectValue]
    ) -> None:
        """Add the fields. Of two with the same name the later one of Java's order wins."""
        for key in hash_map_order(fields):
            name, item = self._name(prefix, key), fields[key]
            found = None if item is None else schema_type(item)
            if found is SchemaType.MAP:
                self._flatten_map(item, name, flat)
            elif item is None or found in _KEPT:
                flat[name] = item
            elif found is None:
                raise data_exception(
                    f"Flatten transformation was passed a value of type class {class_name(item)} "
                    "which is not supported by Connect's data API"
                )
            else:
                raise data_exception(
                    f"Flatten transformation does not support class {class_name(item)} for record "
                    f"without schemas (for field {name})."
                )

    def _updated_schema(self, schema: Schema) -> Schema:
        default = schema.default if isinstance(schema.default, Struct) else None
        leaves = self._leaf_schemas(schema, "", schema.optional, default)
        return struct_schema(leaves, basics=schema)

    def _leaf_schemas(
        self, schema: Schema, prefix: str, optional: bool, parent_default: Struct | None
    ) -> Iterator[tuple[str, Schema]]:
        """Yield names and schemas. Below an optional struct every field is optional."""
        for field in schema.fields:
            name = self._name(prefix, field.name)
            is_optional = optional or field.schema.optional
            default = field.schema.default
            if default is None and parent_default is not None:
                default = parent_default.get(field)
            if field.schema.type is SchemaType.STRUCT:
                yield from self._leaf_schemas(field.schema, name, is_optional, default)
            elif field.schema.type in _KEPT:
                yield name, replace(field.schema, optional=is_optional, default=default)
            else:
                raise data_exception(
                    f"Flatten transformation does not support {field.schema.type.name} for record "
                    f"with schemas (for field {name})."
                )

    def _leaf_values(self, schema: Schema, struct: Struct | None) -> Iterator[ConnectValue]:
        """Yield a value for each leaf of the schema, nulls below a struct that is null."""
        for field in schema.fields:
            item = struct.get(field) if struct is not None else None
            if field.schema.type is SchemaType.STRUCT:
                yield from self._leaf_values(field.schema, item)
            else:
                yield item
