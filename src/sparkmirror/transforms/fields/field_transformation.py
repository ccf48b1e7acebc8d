"""What transformations of fields share: they work on the key or on the value of a record."""

from __future__ import annotations

from typing import Final

from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema, SchemaField
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_KEY: Final = frozenset({RecordPart.KEY})
_VALUE: Final = frozenset({RecordPart.VALUE})


class FieldTransformation:
    """A transformation of the key (`$Key`) or of the value (`$Value`).

    `replace_null_with_default` says whether a field that is null counts as its default.
    """

    drops = False

    def __init__(self, part: RecordPart, *, replace_null_with_default: bool = True) -> None:
        self._is_key = part is RecordPart.KEY
        self._replace_null_with_default = replace_null_with_default

    @property
    def reads(self) -> frozenset[RecordPart]:
        """The part that it works on."""
        return _KEY if self._is_key else _VALUE

    @property
    def writes(self) -> frozenset[RecordPart]:
        """The part that it works on."""
        return _KEY if self._is_key else _VALUE

    def _operating_schema(self, record: ConnectRecord) -> Schema | None:
        return record.key_schema if self._is_key else record.value_schema

    def _operating_value(self, record: ConnectRecord) -> ConnectValue:
        return record.key if self._is_key else record.value

    def _new_record(
        self, record: ConnectRecord, schema: Schema | None, value: ConnectValue
    ) -> ConnectRecord:
        if self._is_key:
            return record._replace(key_schema=schema, key=value)
        return record._replace(value_schema=schema, value=value)

    def _field_value(self, struct: Struct, field: SchemaField) -> ConnectValue:
        if self._replace_null_with_default:
            return struct.get(field)
        return struct.get_without_default(field)
