"""What an import or an export has left out or guessed."""

from __future__ import annotations

from typing import NamedTuple


class StrimziRemark(NamedTuple):
    """A field of a resource, or a key of a file, that was left out, guessed or needs work."""

    field: str
    text: str
