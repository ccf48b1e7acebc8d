"""Cast: fields, or the whole key or value, as another type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparkmirror.transforms.data.hash_map_order import hash_map_order
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema, SchemaType, struct_schema
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.field_values.cast_spec import WHOLE, parse_cast_spec
from sparkmirror.transforms.field_values.cast_value import cast_value_to_type
from sparkmirror.transforms.field_values.requirements import require_map, require_struct
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_PURPOSE = "cast types"


class Cast(FieldTransformation):
    """Null stays null. Without schemas a field that is absent is added as null, as in Java."""

    def __init__(
        self,
        part: RecordPart,
        spec: Sequence[str],
        environment: JavaEnvironment,
        *,
        replace_null_with_default: bool = True,
    ) -> None:
        super().__init__(part, replace_null_with_default=replace_null_with_default)
        casts = parse_cast_spec(spec)
        self._whole = casts.get(WHOLE)
        names = hash_map_order(name for name in casts if name is not None)
        self._casts = {name: casts[name] for name in names}
        self._zone = environment.zone
        self._updated = SchemaCache(self._updated_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the new types."""
        value = self._operating_value(record)
        if value is None:
            return record
        schema = self._operating_schema(record)
        if schema is None:
            return self._new_record(record, None, self._without_schema(value))
        updated = self._updated.get(schema)
        return self._new_record(record, updated, self._with_schema(schema, updated, value))

    def _without_schema(self, value: ConnectValue) -> ConnectValue:
        if self._whole is not None:
            return self._cast(None, value, self._whole)
        fields = require_map(value, _PURPOSE)
        casts = {
            name: self._cast(None, fields.get(name), target) for name, target in self._casts.items()
        }
        return fields | casts

    def _with_schema(self, schema: Schema, updated: Schema, value: ConnectValue) -> ConnectValue:
        if self._whole is not None:
            return self._cast(schema, value, self._whole)
        struct = require_struct(value, _PURPOSE)
        result = Struct(updated)
        for field, new_field in zip(struct.schema.fields, updated.fields, strict=True):
            item = self._field_value(struct, field)
            target = self._casts.get(field.name)
            if target is not None:
                item = self._cast(field.schema, item, target)
            result.put(new_field, item)
        return result

    def _updated_schema(self, schema: Schema) -> Schema:
        if self._whole is not None:
            # Java keeps the name, also that of a logical type: such a value cannot be written.
            updated = replace(
                schema, type=self._whole, struct_fields=(), key_schema=None, value_schema=None
            )
        else:
            updated = struct_schema(
                (
                    (field.name, self._field_schema(field.name, field.schema))
                    for field in schema.fields
                ),
                basics=schema,
            )
        return self._with_default(updated, schema)

    def _field_schema(self, name: str, schema: Schema) -> Schema:
        target = self._casts.get(name)
        return schema if target is None else self._with_default(Schema(target), schema)

    def _with_default(self, updated: Schema, schema: Schema) -> Schema:
        """The new schema, optional and with a default as the old one."""
        default = schema.default
        if default is not None and updated.type is not SchemaType.STRUCT:
            default = self._cast(schema, default, updated.type)
        return replace(updated, optional=schema.optional, default=default)

    def _cast(self, schema: Schema | None, value: ConnectValue, target: SchemaType) -> ConnectValue:
        return cast_value_to_type(schema, value, target, self._zone)
