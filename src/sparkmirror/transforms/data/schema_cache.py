"""A small cache from schemas to what was made of them: a topic has few schemas, records repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from sparkmirror.transforms.data.schema import Schema

_MAX_SCHEMAS: Final = 16

_Made = TypeVar("_Made")


class SchemaCache(Generic[_Made]):
    """Remembers results by the object of the schema; forgets all of them when it is full.

    Keeps the schemas, so that no other object can get the identity of one of them.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[Schema], _Made]) -> None:
        self._make = make
        self._made: dict[int, tuple[Schema, _Made]] = {}

    def get(self, schema: Schema) -> _Made:
        """What was made of the schema."""
        found = self._made.get(id(schema))
        if found is None:
            if len(self._made) >= _MAX_SCHEMAS:
                self._made.clear()
            found = (schema, self._make(schema))
            self._made[id(schema)] = found
        return found[1]
