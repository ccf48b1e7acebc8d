"""Recommended values of a key, given the values of the others.

Part of the validate answer only: `recommended_values` and `visible`. A recommendation is never a
fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.config.definition.value_types import ParsedValue


class Recommender(Protocol):
    """Recommends by all parsed values. Must not raise."""

    def valid_values(self, parsed: Mapping[str, ParsedValue]) -> tuple[str, ...]:
        """The values to choose from; empty if there is no recommendation."""

    def visible(self, parsed: Mapping[str, ParsedValue]) -> bool:
        """Whether a form should show the key."""


@dataclass(frozen=True, slots=True)
class FixedRecommender:
    """A fixed choice. An empty one still marks the key as having a recommender, as Connect's."""

    choices: tuple[str, ...] = ()

    def valid_values(self, parsed: Mapping[str, ParsedValue]) -> tuple[str, ...]:
        return self.choices

    def visible(self, parsed: Mapping[str, ParsedValue]) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class VisibleIfSetRecommender:
    """Recommends nothing; visible if another key has a value."""

    other_key: str

    def valid_values(self, parsed: Mapping[str, ParsedValue]) -> tuple[str, ...]:
        return ()

    def visible(self, parsed: Mapping[str, ParsedValue]) -> bool:
        return parsed.get(self.other_key) is not None
