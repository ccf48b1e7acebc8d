"""ExtractField: one field in place of the whole key or value."""

from __future__ import annotations

from sparkmirror.transforms.data.java_exceptions import illegal_argument
from sparkmirror.transforms.field_values.requirements import (
    require_map_or_null,
    require_struct_or_null,
)
from sparkmirror.transforms.field_values.single_field_path import SingleFieldPath
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_PURPOSE = "field extraction"


class ExtractField(FieldTransformation):
    """A field that is absent is null without schemas, and an error with them."""

    def __init__(
        self,
        part: RecordPart,
        field: str,
        syntax_version: str,
        *,
        replace_null_with_default: bool = True,
    ) -> None:
        super().__init__(part, replace_null_with_default=replace_null_with_default)
        self._field = field
        self._path = SingleFieldPath(field, syntax_version)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the field as key or value."""
        schema = self._operating_schema(record)
        value = self._operating_value(record)
        if schema is None:
            fields = require_map_or_null(value, _PURPOSE)
            found = None if fields is None else self._path.value_from_map(fields)
            return self._new_record(record, None, found)
        struct = require_struct_or_null(value, _PURPOSE)
        field = self._path.field_from(schema)
        if field is None:
            raise illegal_argument(f"Unknown field: {self._field}")
        if struct is None:
            return self._new_record(record, field.schema, None)
        found = self._path.value_from_struct(struct, with_default=self._replace_null_with_default)
        return self._new_record(record, field.schema, found)
