"""The patterns of Java's SimpleDateFormat: letters with their counts, and literal text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sparkmirror.transforms.data.java_exceptions import illegal_argument

_PATTERN_CHARACTERS: Final = frozenset("GyMdkHmsSEDFwWahKzZYuXL")
_MAX_ISO_ZONE: Final = 3


@dataclass(frozen=True, slots=True)
class PatternField:
    """A letter of a pattern, and how often it is repeated."""

    letter: str
    count: int


@dataclass(frozen=True, slots=True)
class LiteralText:
    """Text that stands for itself."""

    text: str


def parse_pattern(pattern: str) -> tuple[PatternField | LiteralText, ...]:
    """The elements of a pattern. Raises IllegalArgumentException in Java's words."""
    elements: list[PatternField | LiteralText] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "'":
            text, position = _quoted(pattern, position)
            elements.append(LiteralText(text))
        elif char.isascii() and char.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == char:
                end += 1
            elements.append(_field(char, end - position))
            position = end
        else:
            elements.append(LiteralText(char))
            position += 1
    return tuple(elements)


def _field(letter: str, count: int) -> PatternField:
    if letter not in _PATTERN_CHARACTERS:
        raise illegal_argument(f"Illegal pattern character '{letter}'")
    if letter == "X" and count > _MAX_ISO_ZONE:
        raise illegal_argument(f"invalid ISO 8601 format: length={count}")
    return PatternField(letter, count)


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    """Read quoted text from its quote on. Two quotes are one quote, inside or outside."""
    if pattern.startswith("''", start):
        return "'", start + 2
    text = ""
    position = start + 1
    while position < len(pattern):
        if pattern[position] != "'":
            text += pattern[position]
            position += 1
        elif pattern.startswith("''", position):
            text += "'"
            position += 2
        else:
            return text, position + 1
    raise illegal_argument("Unterminated quote")
