"""What somebody may have meant by a name that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MIN_SIMILARITY = 0.75


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest, if any is close: `enable` gives `enabled`."""
    found = get_close_matches(name, known, n=1, cutoff=_MIN_SIMILARITY)
    return found[0] if found else None
