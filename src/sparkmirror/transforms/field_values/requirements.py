"""Connect's Requirements: what a key or value must be for a transformation, in Java's words."""

from __future__ import annotations

from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_values import ConnectValue, null_safe_class_name
from sparkmirror.transforms.data.struct import Struct


def require_map(value: ConnectValue, purpose: str) -> dict[str, ConnectValue]:
    """The value, which must be a map. Raises DataException."""
    if isinstance(value, dict):
        return value
    raise data_exception(
        f"Only Map objects supported in absence of schema for [{purpose}], found: "
        f"{null_safe_class_name(value)}"
    )


def require_map_or_null(value: ConnectValue, purpose: str) -> dict[str, ConnectValue] | None:
    """The value, which must be a map or null. Raises DataException."""
    return None if value is None else require_map(value, purpose)


def require_struct(value: ConnectValue, purpose: str) -> Struct:
    """The value, which must be a struct. Raises DataException."""
    if isinstance(value, Struct):
        return value
    raise data_exception(
        f"Only Struct objects supported for [{purpose}], found: {null_safe_class_name(value)}"
    )


def require_struct_or_null(value: ConnectValue, purpose: str) -> Struct | None:
    """The value, which must be a struct or null. Raises DataException."""
    return None if value is None else require_struct(value, purpose)
