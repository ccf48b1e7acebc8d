"""Sets of code points, and the named classes of Java's regular expressions.

A set is a list of ranges, so union, intersection and complement do not depend on the syntax of
`re`. The named classes are Java's (`\\d`, `\\h`, `\\p{Alpha}`, `\\p{Lu}`). General categories come
from Python's Unicode tables, which may be older or newer than those of a Java version.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True, slots=True)
class CodePointSet:
    """A set of code points. Invariant: ranges are sorted, disjoint and do not touch."""

    ranges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        pairs = zip(self.ranges, self.ranges[1:], strict=False)
        assert all(high + 1 < low for (_, high), (low, _) in pairs)

    def __contains__(self, code: int) -> bool:
        at = bisect_right(self.ranges, (code, LAST_CODE_POINT)) - 1
        return at >= 0 and code <= self.ranges[at][1]

    def __or__(self, other: CodePointSet) -> CodePointSet:
        return from_ranges([*self.ranges, *other.ranges])

    def __invert__(self) -> CodePointSet:
        starts = [0, *(high + 1 for _, high in self.ranges)]
        ends = [*(low - 1 for low, _ in self.ranges), LAST_CODE_POINT]
        return CodePointSet(
            tuple((low, high) for low, high in zip(starts, ends, strict=True) if low <= high)
        )

    def __and__(self, other: CodePointSet) -> CodePointSet:
        return ~(~self | ~other)

    def __sub__(self, other: CodePointSet) -> CodePointSet:
        return self & ~other

    def with_both_cases(self) -> CodePointSet:
        """Return the set with the other case of each ASCII letter. Java's `(?i)` is ASCII only."""
        upper = (self & _ASCII_UPPER).ranges
        lower = (self & _ASCII_LOWER).ranges
        swapped = [(low + 32, high + 32) for low, high in upper]
        swapped += [(low - 32, high - 32) for low, high in lower]
        return from_ranges([*self.ranges, *swapped])

    def to_pattern(self) -> str:
        """Return the set in the syntax of Python's `re`: one character, or a class."""
        if not self.ranges:
            return r"[^\s\S]"
        if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]:
            return _format_code_point(self.ranges[0][0])
        if self.ranges == ((0, LAST_CODE_POINT),):
            return r"[\s\S]"
        complement = (~self).ranges
        is_shorter = len(complement) < len(self.ranges)
        sign, ranges = ("^", complement) if is_shorter else ("", self.ranges)
        return f"[{sign}{''.join(_format_range(low, high) for low, high in ranges)}]"


def _format_range(low: int, high: int) -> str:
    first, last = _format_code_point(low), _format_code_point(high)
    if low == high:
        return first
    return first + last if low + 1 == high else f"{first}-{last}"


def _format_code_point(code: int) -> str:
    if 0x20 <= code < 0x7F:
        return re.escape(chr(code))
    return f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"


def from_ranges(ranges: Iterable[tuple[int, int]]) -> CodePointSet:
    """Return the set of ranges, which may overlap and be in any order."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return CodePointSet(tuple(merged))


def from_text(text: str) -> CodePointSet:
    """Return the set of the characters of a text."""
    return from_ranges((ord(char), ord(char)) for char in text)


def _from_spans(*spans: str) -> CodePointSet:
    return from_ranges((ord(span[0]), ord(span[1])) for span in spans)


_ASCII_UPPER = _from_spans("AZ")
_ASCII_LOWER = _from_spans("az")
ALL_CODE_POINTS = from_ranges([(0, LAST_CODE_POINT)])
NO_CODE_POINTS = from_ranges([])
LINE_TERMINATORS = from_text("\n\r\x85\u2028\u2029")

_DIGIT = _from_spans("09")
_SPACE = from_text(" \t\n\x0b\f\r")
_WORD = _from_spans("az", "AZ", "09", "__")
_HORIZONTAL_SPACE = from_text(" \t\xa0\u1680\u180e\u202f\u205f\u3000") | _from_spans("\u2000\u200a")
VERTICAL_SPACE = from_text("\x0b\f") | LINE_TERMINATORS
_PUNCT = _from_spans("!/", ":@", "[`", "{~")

_LETTER_ESCAPES = {
    "d": _DIGIT,
    "s": _SPACE,
    "w": _WORD,
    "h": _HORIZONTAL_SPACE,
    "v": VERTICAL_SPACE,
}
CLASS_ESCAPES = _LETTER_ESCAPES | {
    name.upper(): ~points for name, points in _LETTER_ESCAPES.items()
}

_ASCII = from_ranges([(0, 0x7F)])
_CONTROL = from_ranges([(0, 0x1F), (0x7F, 0x7F)])
_NAMED_CLASSES = {
    "Lower": _ASCII_LOWER,
    "Upper": _ASCII_UPPER,
    "ASCII": _ASCII,
    "Alpha": _ASCII_LOWER | _ASCII_UPPER,
    "Digit": _DIGIT,
    "Alnum": _from_spans("az", "AZ", "09"),
    "Punct": _PUNCT,
    "Graph": _from_spans("!~"),
    "Print": _from_spans(" ~"),
    "Blank": from_text(" \t"),
    "Cntrl": _CONTROL,
    "XDigit": _from_spans("09", "af", "AF"),
    "Space": _SPACE,
    "L1": from_ranges([(0, 0xFF)]),
    "all": ALL_CODE_POINTS,
    "javaISOControl": from_ranges([(0, 0x1F), (0x7F, 0x9F)]),
}

# Names of several general categories, and other names of one.
_CATEGORY_UNIONS = {
    "LC": ("Lu", "Ll", "Lt"),
    "LD": ("L", "Nd"),
    "javaLetter": ("L",),
    "javaDigit": ("Nd",),
    "javaLetterOrDigit": ("L", "Nd"),
    "javaSpaceChar": ("Z",),
    "IsLetter": ("L",),
    "IsDigit": ("Nd",),
}
_CASED = ("Lu", "Ll", "Lt")
_CATEGORY = re.compile("(?:gc=|Is)?([A-Z][a-z]?)")


@lru_cache(maxsize=1)
def _categories() -> dict[str, CodePointSet]:
    """Scan Unicode once, and only if a pattern needs it: it takes a quarter of a second."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for category, run in groupby(
        range(LAST_CODE_POINT + 1), key=lambda code: unicodedata.category(chr(code))
    ):
        points = list(run)
        spans.setdefault(category, []).append((points[0], points[-1]))
    return {category: from_ranges(ranges) for category, ranges in spans.items()}


def _in_categories(names: Iterable[str]) -> CodePointSet:
    """Return the union of general categories. One letter is all categories that begin with it."""
    prefixes = tuple(names)
    found = [points for name, points in _categories().items() if name.startswith(prefixes)]
    return from_ranges(span for points in found for span in points.ranges)


def named_class(name: str, *, ignore_case: bool) -> CodePointSet | None:
    """Return the set of `\\p{name}`; None if the class is not supported."""
    if name in _NAMED_CLASSES:
        points = _NAMED_CLASSES[name]
        return points.with_both_cases() if ignore_case and name in ("Lower", "Upper") else points
    if name == "javaWhitespace":
        spaces = _in_categories("Z") - from_text("\xa0\u2007\u202f")
        return spaces | from_ranges([(0x09, 0x0D), (0x1C, 0x1F)])
    if name in _CATEGORY_UNIONS:
        return _in_categories(_CATEGORY_UNIONS[name])
    found = _CATEGORY.fullmatch(name)
    category = found[1] if found else ""
    if not any(category and known.startswith(category) for known in _categories()):
        return None
    return _in_categories(_CASED if ignore_case and category in _CASED else [category])
