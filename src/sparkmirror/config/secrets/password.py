"""A secret that does not give itself away.

Knows how a secret looks from outside: `[hidden]`, as Kafka writes it. The text behind it is read
in one way only, through `.value`, so that every place that reveals a secret can be found.
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
