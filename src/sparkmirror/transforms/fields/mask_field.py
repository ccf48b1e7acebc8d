"""MaskField: hides fields: an empty value of their type, or a replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.hash_map_order import hash_map_order
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_numbers import (
    double_from_text,
    long_from_text,
    parse_big_decimal,
)
from sparkmirror.transforms.data.java_values import (
    Byte,
    ConnectValue,
    Date,
    Float,
    Integer,
    Short,
    class_name,
    to_float32,
    wrap,
)
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.field_values.requirements import require_map, require_struct
from sparkmirror.transforms.fields.field_transformation import FieldTransformation
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_PURPOSE: Final = "mask fields"

_EMPTY_VALUES: Final[dict[type[Any], ConnectValue]] = {
    bool: False,
    Byte: Byte(0),
    Short: Short(0),
    Integer: Integer(0),
    int: 0,
    Float: Float(0),
    float: 0.0,
    Decimal: Decimal(0),
    Date: Date(0),
    str: "",
    list: [],
    dict: {},
}

_REPLACEMENTS: Final[dict[type[Any], Callable[[str], ConnectValue]]] = {
    Byte: lambda text: Byte(wrap(long_from_text(text), 8)),
    Short: lambda text: Short(wrap(long_from_text(text), 16)),
    Integer: lambda text: Integer(wrap(long_from_text(text), 32)),
    int: long_from_text,
    Float: lambda text: to_float32(double_from_text(text)),
    float: double_from_text,
    str: lambda text: text,
    Decimal: parse_big_decimal,
}


class MaskField(FieldTransformation):
    """Null stays null. Without schemas a field that is absent is added as null, as in Java."""

    def __init__(
        self,
        part: RecordPart,
        fields: Iterable[str],
        replacement: str | None,
        *,
        replace_null_with_default: bool = True,
    ) -> None:
        super().__init__(part, replace_null_with_default=replace_null_with_default)
        self._fields = dict.fromkeys(hash_map_order(fields))
        self._replacement = replacement

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the fields hidden."""
        schema = self._operating_schema(record)
        value = self._operating_value(record)
        if schema is None:
            fields = require_map(value, _PURPOSE)
            masked = {name: self._masked(fields.get(name)) for name in self._fields}
            return self._new_record(record, None, fields | masked)
        struct = require_struct(value, _PURPOSE)
        result = Struct(struct.schema)
        for field in struct.schema.fields:
            item = self._field_value(struct, field)
            result.put(field, self._masked(item) if field.name in self._fields else item)
        return self._new_record(record, schema, result)

    def _masked(self, value: ConnectValue) -> ConnectValue:
        if value is None:
            return None
        if self._replacement is not None:
            return self._replaced(value, self._replacement)
        empty = _EMPTY_VALUES.get(type(value))
        if empty is None:
            raise data_exception(f"Cannot mask value of type: class {class_name(value)}")
        return empty

    def _replaced(self, value: ConnectValue, replacement: str) -> ConnectValue:
        replace = _REPLACEMENTS.get(type(value))
        if replace is None:
            raise data_exception(
                f"Cannot mask value of type class {class_name(value)} with custom replacement."
            )
        try:
            return replace(replacement)
        except TransformError as error:
            if error.java_class != "java.lang.NumberFormatException":
                raise
            raise data_exception(
                f"Unable to convert {replacement} (class java.lang.String) to number", error
            ) from error
