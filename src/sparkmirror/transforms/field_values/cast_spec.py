"""The `spec` of Cast: fields and their new types, or one type for the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sparkmirror.config.definition.transform_validators import CAST_TYPES, split_at_colons
from sparkmirror.config.definition.value_types import trim
from sparkmirror.transforms.data.schema import SchemaType

OUTPUT_TYPES: Final = tuple(SchemaType[name] for name in CAST_TYPES)
WHOLE: Final = None
"""Stands for the whole key or value instead of the name of a field."""


def parse_cast_spec(spec: Sequence[str]) -> dict[str | None, SchemaType]:
    """The new type of each field, or of the whole. Requires a spec that the validator accepts."""
    casts: dict[str | None, SchemaType] = {}
    for mapping in spec:
        parts = split_at_colons(mapping)
        field = trim(parts[0]) if len(parts) == 2 else WHOLE
        casts[field] = SchemaType[trim(parts[-1]).upper()]
    return casts
