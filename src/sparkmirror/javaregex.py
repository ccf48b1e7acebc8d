"""Java's regular expressions, rewritten for Python's `re`.

Patterns in MirrorMaker 2 files are Java's (`topics`, `groups`, excludes). The pattern is parsed by
Java's grammar and written again with every difference made explicit: each character becomes a set
of code points, each anchor a look-around, each flag is applied where it holds. So the result gives
Java's answer to `Pattern.matches` through `fullmatch`, with the same group numbers and names, or
the pattern is refused with a sentence that names the construct, its position and what to write
instead. Recorded answers of a real Java are in `tests/golden/regex`.

`\\b` counts ASCII letters, digits and `_` as word characters, as Java does since 19; Java 17 also
counts other letters. Topic names are ASCII, so the two cannot differ on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from sparkmirror import codepoints
from sparkmirror.codepoints import CodePoints
from sparkmirror.errors import JavaRegexError

_MATCHES_NOTHING = "(?!)"
_MOST_REPEATS = 2**31 - 1
_DEEPEST = 100

_CHARACTER_ESCAPES = {"a": 0x07, "e": 0x1B, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09}
_FLAGS = frozenset("idms")
_FOREIGN_FLAGS = {
    "x": "write the pattern without white space and comments",
    "u": "list both cases of the letters you mean, as in [Éé]",
    "U": "name the characters you mean, as in [\\p{L}\\p{Nd}_] for \\w",
    "c": "write the composed and the decomposed form with |",
}

_AT_LAST_LINE_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_AT_ANY_LINE_END = r"(?=\Z|(?<!\r)\n|[\r\x85\u2028\u2029])"
_AT_ANY_LINE_START = r"(?:(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n)))"
_ANCHORS = {"A": r"\A", "G": r"\A", "b": r"\b", "B": r"(?!\b)", "z": r"\Z"}
_LINE_BREAK = r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])"


def compile_java(pattern: str) -> re.Pattern[str]:
    """Translate one Java pattern; use the result with `fullmatch`. Raises JavaRegexError."""
    return re.compile(_Parser(pattern).translate(), re.ASCII)


def compile_list(items: Iterable[str]) -> re.Pattern[str]:
    """Join with `|`, without grouping, as MirrorMaker 2 does; an empty list matches nothing."""
    listed = list(items)
    return compile_java("|".join(listed)) if listed else re.compile(_MATCHES_NOTHING)


class _Piece(NamedTuple):
    """Python text for one part of the pattern, and how many characters it can match."""

    text: str
    least: int
    most: int | None

    def repeatable(self) -> str:
        """Give the text so that a quantifier may follow: Python repeats no bare anchor."""
        return f"(?:{self.text})" if self.most == 0 else self.text


class _Repeat(NamedTuple):
    """A quantifier: bounds (`most` None: unlimited) and `` greedy, `?` lazy, `+` possessive."""

    least: int
    most: int | None
    mood: str

    def bounds(self) -> str:
        """Write the bounds as Python does."""
        short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((self.least, self.most))
        return short or f"{{{self.least},{'' if self.most is None else self.most}}}"


_EMPTY = _Piece("(?:)", 0, 0)


def _unquote(pattern: str) -> tuple[str, list[int]]:
    """Turn `\\Q...\\E` into escapes, as Java does before parsing; with each character's origin."""
    text: list[str] = []
    origin: list[int] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("\\Q", at):
            start, end = at + 2, pattern.find("\\E", at + 2)
            end = len(pattern) if end < 0 else end
            pieces = [_quoted(pattern[i], first=i == start) for i in range(start, end)]
            places = [i for i in range(start, end) for _ in pieces[i - start]]
            following = end + 2
        else:
            following = at + 2 if pattern[at] == "\\" else at + 1
            pieces = [pattern[at:following]]
            places = list(range(at, min(following, len(pattern))))
        text += pieces
        origin += places
        at = following
    return "".join(text), origin


def _quoted(char: str, *, first: bool) -> str:
    if char.isascii() and char.isdigit() and first:
        return f"\\x3{char}"  # an octal or hexadecimal escape may stand before the quote
    return char if not char.isascii() or char.isalnum() else f"\\{char}"


class _Parser:
    """One pass over one pattern. Method names follow the grammar, outermost first."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._text, self._origin = _unquote(pattern)
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._depth = 0
        self._groups = 0
        self._names: dict[str, int] = {}
        self._open: set[int] = set()
        self._uncertain: set[int] = set()
        self._references: list[tuple[int, int]] = []

    def translate(self) -> str:
        """Parse all of it and give Python's text."""
        piece = self._join(self._alternatives())
        if self._at < len(self._text):
            self._refuse("unmatched ')'", "escape it as \\)")
        for group, at in self._references:
            if group in self._uncertain:
                self._refuse(
                    f"a reference to group {group}, which is repeated or only looked for in vain",
                    "write out what it may repeat",
                    at=at,
                )
        return piece.text

    # -- reading ---------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        """Look at a character; empty at the end of the pattern."""
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _read(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _take(self, text: str) -> bool:
        """Step over `text` if it stands here."""
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _digits(self, allowed: str, at_most: int) -> str:
        start = self._at
        while self._at - start < at_most and self._peek() and self._peek() in allowed:
            self._at += 1
        return self._text[start : self._at]

    def _refuse(self, problem: str, instead: str, *, at: int | None = None) -> NoReturn:
        place = self._at if at is None else at
        position = self._origin[place] if place < len(self._origin) else len(self._pattern)
        raise JavaRegexError(self._pattern, position, problem, instead)

    # -- structure -------------------------------------------------------------------------------

    def _alternatives(self) -> list[_Piece]:
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        return branches

    @staticmethod
    def _join(branches: list[_Piece]) -> _Piece:
        tops = [branch.most for branch in branches]
        most = None if None in tops else max(top for top in tops if top is not None)
        text = "|".join(branch.text for branch in branches)
        return _Piece(text, min(branch.least for branch in branches), most)

    def _sequence(self) -> _Piece:
        text, least, most = "", 0, 0
        unlimited = False
        while self._peek() not in ("", "|", ")"):
            start, groups_before = self._at, self._groups
            atom = self._atom()
            if atom is None:  # flags, which are nothing by themselves and cannot be repeated
                continue
            piece = self._repeated(atom, start, range(groups_before + 1, self._groups + 1))
            text += piece.text
            least += piece.least
            unlimited = unlimited or piece.most is None
            most += piece.most or 0
        return _Piece(text, least, None if unlimited else most)

    def _repeated(self, atom: _Piece, start: int, groups: range) -> _Piece:
        repeat = self._quantifier()
        if repeat is None:
            return atom
        if self._text[start : start + 2] == "\\R":
            self._refuse("a repeated \\R", "name the characters: [\\r\\n]", at=start)
        if repeat.most is None or repeat.most > 1:
            self._uncertain.update(groups)
        if repeat.mood == "+":  # in Java each round is final by itself, not only all of them
            text = f"(?>(?>{atom.text}){repeat.bounds()})"
        else:
            text = f"{atom.repeatable()}{repeat.bounds()}{repeat.mood}"
        if repeat.most is None or atom.most is None:
            most = None if atom.most != 0 and repeat.most != 0 else 0
        else:
            most = atom.most * repeat.most
        return _Piece(text, atom.least * repeat.least, most)

    def _quantifier(self) -> _Repeat | None:
        bounds: tuple[int, int | None]
        if self._take("?"):
            bounds = (0, 1)
        elif self._take("*"):
            bounds = (0, None)
        elif self._take("+"):
            bounds = (1, None)
        elif self._peek() == "{":
            bounds = self._counts()
        else:
            return None
        mood = self._read() if self._peek() in ("?", "+") and self._peek() else ""
        return _Repeat(*bounds, mood)

    def _counts(self) -> tuple[int, int | None]:
        start = self._at
        found = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}").match(self._text, start)
        if found is None or (found[3] and not found[2]):
            self._refuse("an unfinished repetition '{'", "write {n}, {n,} or {n,m}, or \\{")
        least = int(found[1])
        most = (int(found[3]) if found[3] else None) if found[2] else least
        if least > _MOST_REPEATS or (most is not None and not least <= most <= _MOST_REPEATS):
            self._refuse("a repetition range that Java rejects", "write {n,m} with n <= m")
        self._at = found.end()
        return least, most

    def _atom(self) -> _Piece | None:
        char = self._peek()
        if char == "(":
            return self._group()
        if char == "[":
            return self._one_of(self._class())
        if char == "\\":
            return self._escape()
        if char in "?*+":
            self._refuse(f"a dangling '{char}'", f"escape it as \\{char}")
        if char == "{":
            return _EMPTY  # Java lets a repetition stand alone: it repeats nothing
        self._at += 1
        if char == ".":
            return self._one_of(self._dot())
        if char in "^$":
            return _Piece(self._line_anchor(char), 0, 0)
        return self._one_of(self._folded(codepoints.of_text(char)))

    @staticmethod
    def _one_of(points: CodePoints) -> _Piece:
        return _Piece(points.pattern(), 1, 1)

    def _folded(self, points: CodePoints) -> CodePoints:
        return points.either_case() if "i" in self._flags else points

    def _dot(self) -> CodePoints:
        if "s" in self._flags:
            return codepoints.ALL
        return ~(codepoints.of_text("\n") if "d" in self._flags else codepoints.LINE_ENDS)

    def _line_anchor(self, char: str) -> str:
        many, unix = "m" in self._flags, "d" in self._flags
        if char == "^":
            if not many:
                return r"\A"
            return r"(?:(?!\Z)(?:\A|(?<=\n)))" if unix else _AT_ANY_LINE_START
        if many:
            return r"(?=\Z|\n)" if unix else _AT_ANY_LINE_END
        return r"(?=\n?\Z)" if unix else _AT_LAST_LINE_END

    # -- groups ----------------------------------------------------------------------------------

    def _group(self) -> _Piece | None:
        start, flags = self._at, self._flags
        self._at += 1
        opening = self._opening(start)
        if opening is None:
            return None
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"groups nested deeper than {_DEEPEST}", "flatten them", at=start)
        number, groups_before = self._groups, self._groups
        if opening.startswith("(?P<") or opening == "(":
            self._open.add(number)
        branches = self._alternatives()
        if not self._take(")"):
            self._refuse("a group that is never closed", "add ) or write \\(", at=start)
        self._open.discard(number)
        self._flags = flags
        self._depth -= 1
        if opening in ("(?!", "(?<!"):
            self._uncertain.update(range(groups_before + 1, self._groups + 1))
        if opening in ("(?<=", "(?<!"):
            return self._look_behind(opening, branches, start)
        body = self._join(branches)
        if opening in ("(?=", "(?!"):
            return _Piece(f"{opening}{body.text})", 0, 0)
        return _Piece(f"{opening}{body.text})", body.least, body.most)

    def _opening(self, start: int) -> str | None:
        """Read what follows `(`; give Python's opening, or None if it only set flags."""
        for opening in ("?:", "?=", "?!", "?>", "?<=", "?<!"):
            if self._take(opening):
                return f"({opening}"
        if self._take("?<"):
            self._groups += 1
            name = self._group_name()
            if name in self._names:
                self._refuse(f"a second group named {name!r}", "give it another name", at=start)
            self._names[name] = self._groups
            return f"(?P<{name}>"
        if self._take("?"):
            return self._flag_group(start)
        self._groups += 1
        return "("

    def _group_name(self) -> str:
        found = re.compile("([a-zA-Z][a-zA-Z0-9]*)>").match(self._text, self._at)
        if found is None:
            self._refuse("a bad group name", "write <name> with ASCII letters and digits")
        self._at = found.end()
        return found[1]

    def _flag_group(self, start: int) -> str | None:
        """Read `(?flags)` or `(?flags:`; a group of its own restores the flags when it closes."""
        found = re.compile("([a-zA-Z]*)(-[a-zA-Z]*)?([:)])").match(self._text, self._at)
        wanted, unwanted = (found[1], found[2] or "") if found else ("", "")
        if found is None or set(wanted + unwanted) - set("-idmsuxUc"):
            self._refuse("an unknown group or flag after '(?'", "see java.util.regex", at=start)
        for flag in wanted:
            if flag in _FOREIGN_FLAGS:
                self._refuse(f"the flag '{flag}'", _FOREIGN_FLAGS[flag], at=start)
        self._at = found.end()
        self._flags = (self._flags | (set(wanted) & _FLAGS)) - set(unwanted)
        return "(?:" if found[3] == ":" else None

    def _look_behind(self, opening: str, branches: list[_Piece], start: int) -> _Piece:
        """Write one look-behind per alternative: Python wants each of a fixed width."""
        if any(branch.least != branch.most for branch in branches):
            self._refuse(
                "a look-behind that can match texts of different lengths",
                "list the lengths as alternatives: (?<=a|aa)",
                at=start,
            )
        parts = [f"{opening}{branch.text})" for branch in branches]
        text = "|".join(parts) if opening == "(?<=" else "".join(parts)
        return _Piece(f"(?:{text})", 0, 0)

    # -- escapes outside classes -----------------------------------------------------------------

    def _escape(self) -> _Piece:
        start = self._at
        self._at += 1
        letter = self._read()
        if letter in _ANCHORS:
            if letter == "b" and self._peek() == "{":
                self._refuse("a grapheme boundary \\b{g}", "write \\b", at=start)
            return _Piece(_ANCHORS[letter], 0, 0)
        if letter == "Z":
            text = r"(?=\n?\Z)" if "d" in self._flags else _AT_LAST_LINE_END
            return _Piece(text, 0, 0)
        if letter == "R":
            return _Piece(_LINE_BREAK, 1, 2)
        if letter == "k":
            return self._named_reference(start)
        if letter in "123456789" and letter:
            return self._numbered_reference(letter, start)
        if letter == "X":
            self._refuse("a grapheme cluster \\X", "write . or name the characters", at=start)
        return self._one_of(self._set_or_character(letter, start))

    def _named_reference(self, start: int) -> _Piece:
        if not self._take("<"):
            self._refuse("\\k without <name>", "write \\k<name>", at=start)
        name = self._group_name()
        if name not in self._names:
            self._refuse(f"a reference to the unknown group {name!r}", "define it first", at=start)
        return self._reference(self._names[name], start)

    def _numbered_reference(self, digits: str, start: int) -> _Piece:
        while self._peek() in "0123456789" and self._peek():
            if int(digits + self._peek()) > self._groups:
                break
            digits += self._read()
        return self._reference(int(digits), start)

    def _reference(self, group: int, start: int) -> _Piece:
        if group > self._groups or group in self._open:
            self._refuse(
                f"a reference to group {group} before its end",
                "close the group before referring to it",
                at=start,
            )
        self._references.append((group, start))
        flag = "i" if "i" in self._flags else ""
        return _Piece(f"(?{flag}:\\{group})", 0, None)

    # -- what a backslash means inside and outside classes ---------------------------------------

    def _set_or_character(self, letter: str, start: int) -> CodePoints:
        if letter in codepoints.ESCAPES:
            return codepoints.ESCAPES[letter]
        if letter in ("p", "P"):
            points = self._property(start)
            return ~points if letter == "P" else points
        code = self._character(letter, start)
        return self._folded(codepoints.of_ranges([(code, code)]))

    def _property(self, start: int) -> CodePoints:
        name = self._read()
        if name == "{":
            end = self._text.find("}", self._at)
            name = self._text[self._at : max(end, self._at)]
            self._at = end + 1
        points = codepoints.named(name, ignore_case="i" in self._flags) if name else None
        if points is None:
            self._refuse(
                f"the character class \\p{{{name}}}",
                "list the characters as ranges: [\\x{370}-\\x{3ff}]",
                at=start,
            )
        return points

    def _character(self, letter: str, start: int) -> int:
        """Read an escape that stands for one character."""
        if letter in _CHARACTER_ESCAPES:
            return _CHARACTER_ESCAPES[letter]
        if letter == "0":
            return self._octal(start)
        if letter == "x":
            return self._hexadecimal(start)
        if letter == "u":
            return self._unicode(start)
        if letter == "c" and self._peek():
            return ord(self._read()) ^ 64
        if letter == "N":
            self._refuse("a named character \\N{...}", "write it as \\x{...}", at=start)
        if not letter or (letter.isascii() and letter.isalnum()):
            self._refuse(f"the escape \\{letter}", "Java has no such escape; write \\\\", at=start)
        return ord(letter)

    def _octal(self, start: int) -> int:
        first = self._digits("01234567", 1)
        if not first:
            self._refuse("\\0 without octal digits", "write \\0n, \\0nn or \\0mnn", at=start)
        return int(first + self._digits("01234567", 2 if first < "4" else 1), 8)

    def _hexadecimal(self, start: int) -> int:
        found = re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}").match(self._text, self._at)
        code = int(found[1] or found[2], 16) if found else codepoints.LAST + 1
        if found is None or code > codepoints.LAST:
            self._refuse("a bad \\x", "write \\xhh or \\x{h...h} up to 10ffff", at=start)
        self._at = found.end()
        return self._whole(code, start)

    def _unicode(self, start: int) -> int:
        digits = self._digits("0123456789abcdefABCDEF", 4)
        if len(digits) < 4:
            self._refuse("a bad \\u", "write \\u and four hexadecimal digits", at=start)
        code = int(digits, 16)
        pair = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self._text, self._at)
        if 0xD800 <= code < 0xDC00 and pair:
            self._at = pair.end()
            return 0x10000 + ((code - 0xD800) << 10) + int(pair[1], 16) - 0xDC00
        return self._whole(code, start)

    def _whole(self, code: int, start: int) -> int:
        if 0xD800 <= code < 0xE000:
            self._refuse("half of a surrogate pair", "write the character as \\x{...}", at=start)
        return code

    # -- character classes -----------------------------------------------------------------------

    def _class(self) -> CodePoints:
        """Read `[...]`, with `&&` between operands; the complement is taken last, as in Java."""
        start = self._at
        self._at += 1
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"classes nested deeper than {_DEEPEST}", "flatten them", at=start)
        negated = self._take("^")
        points = self._members(start)
        while self._take("&&"):
            points &= self._members(start)
        self._at += 1
        self._depth -= 1
        return ~points if negated else points

    def _members(self, start: int) -> CodePoints:
        """Read one operand: everything up to `]` or `&&`. The first `]` is a character."""
        points: CodePoints | None = None
        while points is None or not self._text.startswith(("]", "&&"), self._at):
            if not self._peek():
                self._refuse(
                    "a character class that is never closed", "add ] or write \\[", at=start
                )
            member = self._class() if self._peek() == "[" else self._range()
            points = member if points is None else points | member
        return points

    def _range(self) -> CodePoints:
        start = self._at
        low = self._end_of_range()
        if isinstance(low, CodePoints):
            return low
        if self._peek() == "-" and self._peek(1) not in ("[", "]", ""):
            self._at += 1
            high = self._end_of_range()
            if isinstance(high, CodePoints) or high < low:
                self._refuse("a character range that runs backwards", "write low-high", at=start)
        else:
            high = low
        return self._folded(codepoints.of_ranges([(low, high)]))

    def _end_of_range(self) -> int | CodePoints:
        """Read one member: a character, or an escape that names a set."""
        start = self._at
        char = self._read()
        if char != "\\":
            return ord(char)
        letter = self._read()
        if letter == "v" and "-" in (self._peek(), self._text[start - 1 : start]):
            return 0x0B  # next to a dash Java still reads \v as the old vertical tab
        if letter in codepoints.ESCAPES or letter in ("p", "P"):
            return self._set_or_character(letter, start)
        return self._character(letter, start)
