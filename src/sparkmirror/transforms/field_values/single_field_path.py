"""Connect's SingleFieldPath: the steps to one field, nested ones in the syntax V2.

In V2 a dot leads into a nested field. Backticks around a step keep its dots; a backtick closes a
step only at a dot or at the end, and a backslash escapes one.
"""

from __future__ import annotations

from sparkmirror.transforms.data.java_exceptions import config_exception
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema, SchemaField
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.field_values.requirements import (
    require_map_or_null,
    require_struct_or_null,
)

_PURPOSE = "nested field access"


class SingleFieldPath:
    """The path to one field."""

    def __init__(self, path: str, syntax_version: str) -> None:
        self._steps = _steps(path) if syntax_version.upper() == "V2" else (path,)

    def field_from(self, schema: Schema) -> SchemaField | None:
        """The field that the path leads to; None if there is none."""
        current = schema
        for step in self._steps[:-1]:
            field = current.field(step)
            if field is None:
                return None
            current = field.schema
        return current.field(self._steps[-1])

    def value_from_struct(self, struct: Struct, *, with_default: bool) -> ConnectValue:
        """The value that the path leads to; None if there is none."""
        current: Struct | None = struct
        for step in self._steps[:-1]:
            field = current.schema.field(step) if current is not None else None
            if current is None or field is None:
                return None
            current = require_struct_or_null(current.get(field), _PURPOSE)
        last = current.schema.field(self._steps[-1]) if current is not None else None
        if current is None or last is None:
            return None
        return current.get(last) if with_default else current.get_without_default(last)

    def value_from_map(self, fields: dict[str, ConnectValue]) -> ConnectValue:
        """The value that the path leads to; None if there is none."""
        current = fields
        for step in self._steps[:-1]:
            nested = require_map_or_null(current.get(step), _PURPOSE)
            if nested is None:
                return None
            current = nested
        return current.get(self._steps[-1])


def _steps(path: str) -> tuple[str, ...]:
    steps = []
    position = 0
    while position <= len(path):
        if path.startswith("`", position):
            step, position = _quoted_step(path, position)
        else:
            end = path.find(".", position)
            end = len(path) if end < 0 else end
            step, position = path[position:end], end
        steps.append(step)
        position += 1  # the dot
    return tuple(steps)


def _quoted_step(path: str, start: int) -> tuple[str, int]:
    """A step in backticks, and the position behind it."""
    step = ""
    for position in range(start + 1, len(path)):
        char = path[position]
        if char != "`":
            step += char
        elif path[position - 1] == "\\":
            step = step[:-1] + "`"
        elif position + 1 == len(path) or path[position + 1] == ".":
            return step, position + 1
        else:
            step += char
    raise config_exception(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick "
        f"at position {start} to escape it"
    )
