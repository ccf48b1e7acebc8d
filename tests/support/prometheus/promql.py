"""Reads the names that a PromQL query uses: metrics, their labels, and the labels it groups by.

It knows the grammar as far as rules and dashboards need it, and refuses what it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<range>\[[^\]]*\])
    | (?P<number>[0-9][0-9.]*(?:e[+-]?[0-9]+|ms|[smhdwy])?)
    | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    | (?P<operator>=~|!~|!=|==|>=|<=|[-+*/%^<>=(){},@])
    )""",
    re.VERBOSE,
)
_GROUPING = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = frozenset({"and", "or", "unless", "bool", "offset", "atan2"})
_FUNCTIONS = frozenset(
    {
        *("sum", "min", "max", "avg", "count", "topk", "bottomk", "rate", "increase", "delta"),
        *("time", "vector", "absent", "abs", "ceil", "floor", "clamp_min", "clamp_max"),
        *("histogram_quantile", "label_replace", "label_join", "changes", "resets", "sort"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A metric and the matchers of its labels."""

    metric: str
    matchers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class QueryNames:
    """The names of one query."""

    selectors: list[Selector] = field(default_factory=list)
    grouping: list[str] = field(default_factory=list)
    """The labels of by, without, on and the like."""


def read_names(query: str) -> QueryNames:
    """Read the names of a query. Raises ValueError for what is no query."""
    tokens = _tokens(query)
    names, index = QueryNames(), 0
    while index < len(tokens):
        token, following = tokens[index], tokens[index + 1 : index + 2]
        index += 1
        if token in _WORDS or not re.match(r"[a-zA-Z_:]", token):
            continue
        if token in _GROUPING:
            labels, index = _until(tokens, index, "(", ")")
            names.grouping.extend(label for label in labels if label != ",")
        elif following == ["("] or token in _FUNCTIONS:
            if token not in _FUNCTIONS:
                raise ValueError(f"{token} is no function, in {query}")
        else:
            matchers: dict[str, str] = {}
            if following == ["{"]:
                inside, index = _until(tokens, index, "{", "}")
                matchers = _matchers(inside, query)
            names.selectors.append(Selector(metric=token, matchers=matchers))
    return names


def _tokens(query: str) -> list[str]:
    tokens, position = [], 0
    text = query.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"not PromQL at {text[position:]!r}")
        tokens.append(found[0].strip())
        position = found.end()
    for opening, closing in ("()", "{}"):
        if tokens.count(opening) != tokens.count(closing):
            raise ValueError(f"{opening} without {closing}, in {query}")
    return tokens


def _until(
    tokens: Sequence[str], index: int, opening: str, closing: str
) -> tuple[Sequence[str], int]:
    if tokens[index : index + 1] != [opening]:
        raise ValueError(f"{opening} is missing before {tokens[index:]}")
    end = tokens.index(closing, index)
    return tokens[index + 1 : end], end + 1


def _matchers(inside: Sequence[str], query: str) -> dict[str, str]:
    parts = [inside[start : start + 3] for start in range(0, len(inside), 4)]
    if any(len(part) != 3 or part[1] not in ("=", "=~", "!=", "!~") for part in parts):
        raise ValueError(f"matchers of {query}")
    return {label: value[1:-1] for label, _, value in parts}
