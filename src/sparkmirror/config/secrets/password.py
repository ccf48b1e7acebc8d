"""A secret. Its repr and its text are `[hidden]`, as in Kafka.

Only `.value` returns the secret, so that a search for it finds all code that reveals one.
"""

from __future__ import annotations

from dataclasses import dataclass

HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True, repr=False)
class Password:
    """The value of a PASSWORD-typed key. Two are equal when their secrets are."""

    value: str

    def __repr__(self) -> str:
        return HIDDEN

    def __str__(self) -> str:
        return HIDDEN
