"""Sets of characters, as Java's regular expressions name and combine them.

A set is a list of ranges of code points, so that union, intersection and complement are plain
arithmetic and the answer does not depend on any dialect. Knows Java's named classes (`\\d`, `\\h`,
`\\p{Alpha}`, `\\p{Lu}`); knows nothing of pattern syntax. General categories come from Python's
Unicode tables: a code point that only a newer Unicode has assigned is judged by those.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

LAST = 0x10FFFF


@dataclass(frozen=True, slots=True)
class CodePoints:
    """A set of code points. Invariant: ranges are sorted, disjoint and do not touch."""

    ranges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        pairs = zip(self.ranges, self.ranges[1:], strict=False)
        assert all(high + 1 < low for (_, high), (low, _) in pairs)

    def __contains__(self, code: int) -> bool:
        at = bisect_right(self.ranges, (code, LAST)) - 1
        return at >= 0 and code <= self.ranges[at][1]

    def __or__(self, other: CodePoints) -> CodePoints:
        return of_ranges([*self.ranges, *other.ranges])

    def __invert__(self) -> CodePoints:
        starts = [0, *(high + 1 for _, high in self.ranges)]
        ends = [*(low - 1 for low, _ in self.ranges), LAST]
        return CodePoints(
            tuple((low, high) for low, high in zip(starts, ends, strict=True) if low <= high)
        )

    def __and__(self, other: CodePoints) -> CodePoints:
        return ~(~self | ~other)

    def __sub__(self, other: CodePoints) -> CodePoints:
        return self & ~other

    def either_case(self) -> CodePoints:
        """Add the other case of each ASCII letter; Java's `(?i)` folds nothing else."""
        upper = (self & _ASCII_UPPER).ranges
        lower = (self & _ASCII_LOWER).ranges
        swapped = [(low + 32, high + 32) for low, high in upper]
        swapped += [(low - 32, high - 32) for low, high in lower]
        return of_ranges([*self.ranges, *swapped])

    def pattern(self) -> str:
        """Write the set for Python's `re`: one character, or a class."""
        if not self.ranges:
            return r"[^\s\S]"
        if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]:
            return _written(self.ranges[0][0])
        if self.ranges == ((0, LAST),):
            return r"[\s\S]"
        outside = (~self).ranges
        sign, ranges = ("^", outside) if len(outside) < len(self.ranges) else ("", self.ranges)
        return f"[{sign}{''.join(_span(low, high) for low, high in ranges)}]"


def _span(low: int, high: int) -> str:
    first, last = _written(low), _written(high)
    if low == high:
        return first
    return first + last if low + 1 == high else f"{first}-{last}"


def _written(code: int) -> str:
    if 0x20 <= code < 0x7F:
        return re.escape(chr(code))
    return f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"


def of_ranges(ranges: Iterable[tuple[int, int]]) -> CodePoints:
    """Merge ranges in any order, overlapping or not, into a set."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return CodePoints(tuple(merged))


def of_text(text: str) -> CodePoints:
    """Collect the characters of a text."""
    return of_ranges((ord(char), ord(char)) for char in text)


def _between(*spans: str) -> CodePoints:
    return of_ranges((ord(span[0]), ord(span[1])) for span in spans)


_ASCII_UPPER = _between("AZ")
_ASCII_LOWER = _between("az")
ALL = of_ranges([(0, LAST)])
NOTHING = of_ranges([])
LINE_ENDS = of_text("\n\r\x85\u2028\u2029")

_DIGIT = _between("09")
_SPACE = of_text(" \t\n\x0b\f\r")
_WORD = _between("az", "AZ", "09", "__")
_HORIZONTAL = of_text(" \t\xa0\u1680\u180e\u202f\u205f\u3000") | _between("\u2000\u200a")
VERTICAL = of_text("\x0b\f") | LINE_ENDS
_PUNCT = _between("!/", ":@", "[`", "{~")

_LETTER_ESCAPES = {"d": _DIGIT, "s": _SPACE, "w": _WORD, "h": _HORIZONTAL, "v": VERTICAL}
ESCAPES = _LETTER_ESCAPES | {name.upper(): ~points for name, points in _LETTER_ESCAPES.items()}

_ASCII = of_ranges([(0, 0x7F)])
_CONTROL = of_ranges([(0, 0x1F), (0x7F, 0x7F)])
_NAMED = {
    "Lower": _ASCII_LOWER,
    "Upper": _ASCII_UPPER,
    "ASCII": _ASCII,
    "Alpha": _ASCII_LOWER | _ASCII_UPPER,
    "Digit": _DIGIT,
    "Alnum": _between("az", "AZ", "09"),
    "Punct": _PUNCT,
    "Graph": _between("!~"),
    "Print": _between(" ~"),
    "Blank": of_text(" \t"),
    "Cntrl": _CONTROL,
    "XDigit": _between("09", "af", "AF"),
    "Space": _SPACE,
    "L1": of_ranges([(0, 0xFF)]),
    "all": ALL,
    "javaISOControl": of_ranges([(0, 0x1F), (0x7F, 0x9F)]),
}

# Names that mean several general categories, or one under another name.
_UNIONS = {
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
def _categories() -> dict[str, CodePoints]:
    """Scan Unicode once, and only if a pattern asks: it takes a quarter of a second."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for category, run in groupby(range(LAST + 1), key=lambda code: unicodedata.category(chr(code))):
        points = list(run)
        spans.setdefault(category, []).append((points[0], points[-1]))
    return {category: of_ranges(ranges) for category, ranges in spans.items()}


def _in_categories(names: Iterable[str]) -> CodePoints:
    """Unite general categories; one letter stands for all that begin with it."""
    wanted = tuple(names)
    found = [points for name, points in _categories().items() if name.startswith(wanted)]
    return of_ranges(span for points in found for span in points.ranges)


def named(name: str, *, ignore_case: bool) -> CodePoints | None:
    """Find what `\\p{name}` means; None if it is not among the classes known here."""
    if name in _NAMED:
        points = _NAMED[name]
        return points.either_case() if ignore_case and name in ("Lower", "Upper") else points
    if name == "javaWhitespace":
        spaces = _in_categories("Z") - of_text("\xa0\u2007\u202f")
        return spaces | of_ranges([(0x09, 0x0D), (0x1C, 0x1F)])
    if name in _UNIONS:
        return _in_categories(_UNIONS[name])
    found = _CATEGORY.fullmatch(name)
    category = found[1] if found else ""
    if not any(category and known.startswith(category) for known in _categories()):
        return None
    return _in_categories(_CASED if ignore_case and category in _CASED else [category])
