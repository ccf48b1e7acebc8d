"""Suggestions for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MIN_SIMILARITY = 0.75


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest, if any is close: `enable` gives `enabled`."""
    matches = get_close_matches(name, known, n=1, cutoff=_MIN_SIMILARITY)
    return matches[0] if matches else None
