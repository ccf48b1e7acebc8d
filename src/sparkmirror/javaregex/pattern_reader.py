"""Reads a Java pattern character by character: quotes, escapes and character classes.

It reads the syntax of one character or one set of characters, inside and outside `[...]`, and holds
the current flags. `parser` reads groups, anchors and repetition.
"""

from __future__ import annotations

import re
from typing import NoReturn

from sparkmirror.errors import JavaRegexError
from sparkmirror.javaregex import codepoints
from sparkmirror.javaregex.codepoints import CodePointSet

MAX_NESTING = 100
"""The depth to which groups and classes may nest, far below Python's recursion limit."""

_CHARACTER_ESCAPES = {"a": 0x07, "e": 0x1B, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09}
_HEXADECIMAL = re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def _unquote(pattern: str) -> tuple[str, list[int]]:
    """Replace `\\Q...\\E` by escapes, as Java does before parsing.

    Return the text and, for each of its characters, the position in `pattern`.
    """
    text: list[str] = []
    origins: list[int] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("\\Q", at):
            start, end = at + 2, pattern.find("\\E", at + 2)
            end = len(pattern) if end < 0 else end
            parts = [_escape_quoted(pattern[i], first=i == start) for i in range(start, end)]
            positions = [i for i in range(start, end) for _ in parts[i - start]]
            following = end + 2
        else:
            following = at + 2 if pattern[at] == "\\" else at + 1
            parts = [pattern[at:following]]
            positions = list(range(at, min(following, len(pattern))))
        text += parts
        origins += positions
        at = following
    return "".join(text), origins


def _escape_quoted(char: str, *, first: bool) -> str:
    if not char.isascii() or char.isalpha():
        return char
    if char.isdigit():  # an octal or hexadecimal escape may be just before the quote
        return f"\\x3{char}" if first else char
    return f"\\{char}"


class PatternReader:
    """A position in a pattern, the current flags, and methods to read."""

    def __init__(self, pattern: str) -> None:
        self.text, self._origins = _unquote(pattern)
        self.position = 0
        self.flags: frozenset[str] = frozenset()
        self._pattern = pattern

    def peek(self, ahead: int = 0) -> str:
        """Return a character without reading it; empty after the end of the pattern."""
        return self.text[self.position + ahead : self.position + ahead + 1]

    def read(self) -> str:
        """Read one character; empty at the end of the pattern."""
        char = self.peek()
        self.position += 1
        return char

    def accept(self, text: str) -> bool:
        """Read `text` if it is next. Return whether it was."""
        if not self.text.startswith(text, self.position):
            return False
        self.position += len(text)
        return True

    def accept_match(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        """Read the text that `expected` matches here, if it matches."""
        found = expected.match(self.text, self.position)
        if found:
            self.position = found.end()
        return found

    def fail(self, problem: str, instead: str, *, at: int | None = None) -> NoReturn:
        """Raise JavaRegexError for the position `at`, by default the current one."""
        index = self.position if at is None else at
        position = self._origins[index] if index < len(self._origins) else len(self._pattern)
        raise JavaRegexError(self._pattern, position, problem, instead)

    def apply_case_flag(self, points: CodePointSet) -> CodePointSet:
        """Return the set with both cases if the flag `i` is in effect."""
        return points.with_both_cases() if "i" in self.flags else points

    def read_escape(self, letter: str, start: int) -> CodePointSet:
        """Read the rest of `\\letter`, an escape for a set or one character."""
        points = self._read_named_set(letter, start)
        if points is not None:
            return points
        code = self._read_character(letter, start)
        return self.apply_case_flag(codepoints.from_ranges([(code, code)]))

    def _read_named_set(self, letter: str, start: int) -> CodePointSet | None:
        if letter in codepoints.CLASS_ESCAPES:
            return codepoints.CLASS_ESCAPES[letter]
        if letter not in ("p", "P"):
            return None
        name = self.read()
        if name == "{":
            end = max(self.text.find("}", self.position), self.position)
            name = self.text[self.position : end]
            self.position = end + 1
        points = codepoints.named_class(name, ignore_case="i" in self.flags) if name else None
        if points is None:
            self.fail(
                f"the character class \\p{{{name}}}",
                "list the characters as ranges: [\\x{370}-\\x{3ff}]",
                at=start,
            )
        return ~points if letter == "P" else points

    def _read_character(self, letter: str, start: int) -> int:
        if letter in _CHARACTER_ESCAPES:
            return _CHARACTER_ESCAPES[letter]
        if letter == "0":
            return self._read_octal(start)
        if letter == "x":
            return self._read_hexadecimal(start)
        if letter == "u":
            return self._read_unicode(start)
        if letter == "c" and self.peek():
            return ord(self.read()) ^ 64
        if letter == "N":
            self.fail("a named character \\N{...}", "write it as \\x{...}", at=start)
        if not letter or (letter.isascii() and letter.isalnum()):
            instead = "write \\\\ for a backslash; Java has no such escape here"
            self.fail(f"the escape \\{letter}", instead, at=start)
        return ord(letter)

    def _read_octal(self, start: int) -> int:
        found = self.accept_match(re.compile("[0-3][0-7]{0,2}|[4-7][0-7]?"))
        if found is None:
            self.fail("\\0 without octal digits", "write \\0n, \\0nn or \\0mnn", at=start)
        return int(found[0], 8)

    def _read_hexadecimal(self, start: int) -> int:
        found = self.accept_match(_HEXADECIMAL)
        code = int(found[1] or found[2], 16) if found else codepoints.LAST_CODE_POINT + 1
        if code > codepoints.LAST_CODE_POINT:
            self.fail("a bad \\x", "write \\xhh or \\x{h...h} up to 10ffff", at=start)
        return self._reject_surrogate(code, start)

    def _read_unicode(self, start: int) -> int:
        found = self.accept_match(re.compile("[0-9a-fA-F]{4}"))
        if found is None:
            self.fail("a bad \\u", "write \\u and four hexadecimal digits", at=start)
        code = int(found[0], 16)
        low = self.accept_match(_LOW_SURROGATE) if 0xD800 <= code < 0xDC00 else None
        if low:
            return 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return self._reject_surrogate(code, start)

    def _reject_surrogate(self, code: int, start: int) -> int:
        if 0xD800 <= code < 0xE000:
            self.fail("half of a surrogate pair", "write the character as \\x{...}", at=start)
        return code

    def read_character_class(self, depth: int = 0) -> CodePointSet:
        """Read `[...]`, with `&&` between operands. The complement is taken last, as in Java."""
        start = self.position
        if depth > MAX_NESTING:
            self.fail(f"classes nested deeper than {MAX_NESTING}", "flatten them")
        self.position += 1
        negated = self.accept("^")
        points, _ = self._read_operand(start, depth)
        while self.accept("&&"):
            if self.peek() in ("]", "&"):
                self.fail("nothing on the right of '&&'", "write [a&&[b]] or \\&", at=start)
            operand, mixed = self._read_operand(start, depth)
            if mixed:  # the precedence in Java is surprising
                instead = "put brackets around all of it: [a&&[[b]c]]"
                self.fail("brackets and other members together after '&&'", instead, at=start)
            points &= operand
        self.position += 1
        return ~points if negated else points

    def _read_operand(self, start: int, depth: int) -> tuple[CodePointSet, bool]:
        """Read up to `]` or `&&`. Return the set, and whether it mixes classes and other members.

        A `]` at the start is an ordinary character.
        """
        if self.text.startswith("&&", self.position):
            self.fail("nothing on the left of '&&'", "write [a&&[b]] or \\&", at=start)
        points = codepoints.NO_CODE_POINTS
        members = nested = 0
        while not members or not self.text.startswith(("]", "&&"), self.position):
            if not self.peek():
                self.fail("a character class never closed", "add ] or write \\[", at=start)
            if self.peek() == "[":
                points |= self.read_character_class(depth + 1)
                nested += 1
            else:
                points |= self._read_range()
            members += 1
        return points, nested > 0 and members > 1

    def _read_range(self) -> CodePointSet:
        start = self.position
        low = self._read_member()
        if isinstance(low, CodePointSet):
            return low
        high: int | CodePointSet = low
        if self.peek() == "-" and self.peek(1) not in ("[", "]", ""):
            self.position += 1
            high = self._read_member(after_dash=True)
        if isinstance(high, CodePointSet) or high < low:
            self.fail("a character range that runs backwards", "write low-high", at=start)
        return self.apply_case_flag(codepoints.from_ranges([(low, high)]))

    def _read_member(self, *, after_dash: bool = False) -> int | CodePointSet:
        """Read one member: a character, or an escape for a set."""
        start = self.position
        char = self.read()
        if char != "\\":
            return ord(char)
        letter = self.read()
        if letter == "v" and (after_dash or self.peek() == "-"):
            return 0x0B  # next to a dash, \v is the vertical tab in Java
        points = self._read_named_set(letter, start)
        return self._read_character(letter, start) if points is None else points
