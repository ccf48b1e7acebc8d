"""What a form should offer for a key, given the values of the others.

Part of the validate answer only: `recommended_values` and `visible`. A recommendation is never a
fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.config.value import Value


class Recommender(Protocol):
    """Looks at all parsed values. Must not raise."""

    def values(self, parsed: Mapping[str, Value]) -> tuple[str, ...]:
        """Values worth choosing from; empty if nothing particular can be offered."""

    def visible(self, parsed: Mapping[str, Value]) -> bool:
        """Whether the key means anything just now."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A fixed choice. An empty one still marks the key as having a recommender, as Connect's."""

    choices: tuple[str, ...] = ()

    def values(self, parsed: Mapping[str, Value]) -> tuple[str, ...]:
        return self.choices

    def visible(self, parsed: Mapping[str, Value]) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class VisibleWith:
    """Offers nothing, and is visible once another key has a value."""

    other: str

    def values(self, parsed: Mapping[str, Value]) -> tuple[str, ...]:
        return ()

    def visible(self, parsed: Mapping[str, Value]) -> bool:
        return parsed.get(self.other) is not None
