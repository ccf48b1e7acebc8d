"""Texts about what does not move: one text per cause, with the first name and a count. Pure.

One cluster that is down stops hundreds of partitions for one reason; the operator reads it once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

MAX_CAUSES = 5
"""How many causes a text or a view names; it counts the others."""
_NAMES = re.compile(r"(^|; )(?:\S+ and \d+ more \w+|\S+-\d+): ")
_OTHERS = re.compile(r"; and \d+ more causes?$")


def names_by_cause(reasons: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group names by reason: pairs of a name and its reason. An empty reason is none."""
    causes: dict[str, list[str]] = {}
    for name, reason in reasons:
        if reason:
            causes.setdefault(reason, []).append(name)
    return causes


def cause_text(names: Sequence[str], reason: str, noun: str = "partition") -> str:
    """Return `orders-0 and 79 more partitions: <reason>`."""
    more = len(names) - 1
    others = f" and {more} more {noun}{'' if more == 1 else 's'}" if more > 0 else ""
    return f"{names[0]}{others}: {reason}"


def cause_texts(reasons: Iterable[tuple[str, str]], noun: str = "partition") -> list[str]:
    """Return one text per cause, those with the most names first."""
    causes = names_by_cause(reasons)
    by_size = sorted(causes.items(), key=lambda cause: -len(cause[1]))
    return [cause_text(names, reason, noun) for reason, names in by_size]


def without_known(texts: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the texts that contain no reason of `known`: the operator reads those already."""
    return [text for text in texts if not any(reason and reason in text for reason in known)]


def first_causes(texts: Sequence[str]) -> list[str]:
    """Return the first MAX_CAUSES texts, and one that counts the others."""
    more = len(texts) - MAX_CAUSES
    others = [f"and {more} more cause{'' if more == 1 else 's'}"] if more > 0 else []
    return [*texts[:MAX_CAUSES], *others]


def same_causes(one: str, other: str) -> bool:
    """Return whether two joined texts tell the same causes, of whatever names and however many."""
    return _causes(one) == _causes(other)


def _causes(joined: str) -> frozenset[str]:
    return frozenset(_NAMES.sub(r"\1", _OTHERS.sub("", joined)).split("; "))
