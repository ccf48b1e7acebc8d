"""ReplaceField: takes fields away, keeps some only, or renames them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sparkmirror.transforms.data.hash_map_order import hash_map_order
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema, struct_schema
from sparkmirror.transforms.data.schema_cache import SchemaCache
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.field_values.requirements import require_map, require_struct
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_PURPOSE = "field replacement"


class ReplaceField(FieldTransformation):
    """`exclude` wins over `include`. Both name fields by their old names."""

    def __init__(
        self,
        part: RecordPart,
        exclude: Iterable[str],
        include: Iterable[str],
        renames: Sequence[str],
        *,
        replace_null_with_default: bool = True,
    ) -> None:
        super().__init__(part, replace_null_with_default=replace_null_with_default)
        self._exclude = frozenset(exclude)
        self._include = frozenset(include)
        pairs = [pair.split(":") for pair in renames]
        self._renames = dict(pairs)
        self._old_names = {new: old for old, new in pairs}
        self._updated = SchemaCache(self._updated_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the fields that remain."""
        value = self._operating_value(record)
        if value is None:
            return record
        schema = self._operating_schema(record)
        if schema is None:
            fields = require_map(value, _PURPOSE)
            return self._new_record(record, None, self._replaced(fields))
        struct = require_struct(value, _PURPOSE)
        updated = self._updated.get(schema)
        result = Struct(updated)
        for field in updated.fields:
            old = struct.field(self._old_names.get(field.name, field.name))
            result.put(field, self._field_value(struct, old))
        return self._new_record(record, updated, result)

    def _replaced(self, fields: dict[str, ConnectValue]) -> dict[str, ConnectValue]:
        names = hash_map_order(fields) if self._renames else fields
        return {self._renames.get(name, name): fields[name] for name in names if self._keeps(name)}

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _updated_schema(self, schema: Schema) -> Schema:
        kept = [field for field in schema.fields if self._keeps(field.name)]
        return struct_schema(
            ((self._renames.get(field.name, field.name), field.schema) for field in kept),
            basics=schema,
        )
