"""Validators of the keys of transformations, with the texts of Connect's classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import ParsedValue, invalid_value_message, trim

CAST_TYPES: Final = (
    *("INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64", "BOOLEAN", "STRING"),
)
"""The types that Cast can make, by Connect's names."""
_OTHER_TYPES: Final = ("ARRAY", "MAP", "STRUCT", "BYTES")


@dataclass(frozen=True, slots=True, kw_only=True)
class NonDuplicateList:
    """A list without empty items and without items that occur twice."""

    may_be_empty: bool = False

    @property
    def description(self) -> str:
        return "" if self.may_be_empty else "non-empty list"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, tuple):
            return f"Configuration '{name}' values must not be null."
        if len(set(value)) < len(value):
            return f"Configuration '{name}' values must not be duplicated."
        if not value and not self.may_be_empty:
            return (
                f"Configuration '{name}' must not be empty. Valid values include: any non-empty "
                "value"
            )
        return f"Configuration '{name}' values must not be empty." if "" in value else None


@dataclass(frozen=True, slots=True)
class RenameMappings:
    """A list of pairs, old:new."""

    description: str = "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        for pair in value if isinstance(value, tuple) else ():
            if len(split_at_colons(pair)) != 2:
                return invalid_value_message(name, value, f"Invalid rename mapping: {pair}")
        return None


@dataclass(frozen=True, slots=True)
class CastSpec:
    """A list of field:type, or one type for the whole."""

    description: str = "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, tuple) or not value:
            return "Must specify at least one field to cast."
        has_whole = False
        for mapping in value:
            parts = split_at_colons(mapping)
            if len(parts) > 2:
                # Java names the key of another transformation here.
                return invalid_value_message("renames", value, f"Invalid rename mapping: {mapping}")
            error = _cast_type_error(trim(parts[-1]))
            if error:
                return error
            has_whole = has_whole or len(parts) == 1
        if has_whole and len(value) > 1:
            return (
                "Cast transformations that specify a type to cast the entire value to may only "
                "specify a single cast in their spec"
            )
        return None


def _cast_type_error(name: str) -> str | None:
    upper = name.upper()
    if upper in CAST_TYPES:
        return None
    if upper in _OTHER_TYPES:
        return (
            f"Cast transformation does not support casting to {upper}; supported types are "
            f"[{', '.join(CAST_TYPES)}]"
        )
    return (
        "Invalid value java.lang.IllegalArgumentException: No enum constant "
        f"org.apache.kafka.connect.data.Schema.Type.{upper} for configuration Invalid type found "
        f"in casting spec: {name}"
    )


def split_at_colons(text: str) -> list[str]:
    """The parts of a text between colons, without empty ones at the end, as Java splits."""
    parts = text.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


@dataclass(frozen=True, slots=True)
class ImplementsInterface:
    """A class of one interface. A class that only the resolver knows is taken at its word."""

    interface: str
    classes: tuple[str, ...]

    @property
    def description(self) -> str:
        return (
            f"A concrete subclass of {self.interface}, A class with a public, no-argument"
            f" constructor"
        )

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, str) or value in self.classes or resolve_class(value) is None:
            return None
        simple_name = self.interface.rpartition(".")[2]
        return f"Class class {value} does not implement the {simple_name} interface"
