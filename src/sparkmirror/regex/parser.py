"""Java's grammar: groups, anchors, flags, quantifiers, references.

Reads a pattern once, from left to right, and gives one piece for all of it. Refuses what Java
refuses, and what cannot be given Java's meaning in Python.
"""

from __future__ import annotations

import re

from sparkmirror.regex import codepoints
from sparkmirror.regex.characters import DEEPEST, Reader
from sparkmirror.regex.codepoints import CodePoints
from sparkmirror.regex.pieces import (
    EMPTY,
    Piece,
    Repeat,
    assertion,
    either,
    in_a_row,
    one_of,
    reference,
    repeated,
)

_MOST_REPEATS = 2**31 - 1

_GROUP_NAME = re.compile("([a-zA-Z][a-zA-Z0-9]*)>")
_FLAG_GROUP = re.compile("([idmsuxUc]*)(-[idmsuxUc]*)?([:)])")
_COUNTS = re.compile(r"\{0*([0-9]{1,12})(?:(,)(?:0*([0-9]{1,12}))?)?\}")
_FOREIGN_FLAGS = {
    "x": "write the pattern without white space and comments",
    "u": "list both cases of the letters you mean, as in [Éé]",
    "U": "name the characters you mean, as in [\\p{L}\\p{Nd}_] for \\w",
    "c": "write the composed and the decomposed form with |",
}

_LAST_LINE_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_ANY_LINE_END = r"(?=\Z|(?<!\r)\n|[\r\x85\u2028\u2029])"
_ANY_LINE_START = r"(?:(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n)))"
_ANCHORS = {"A": r"\A", "G": r"\A", "b": r"\b", "B": r"(?!\b)", "z": r"\Z"}
_LINE_BREAK = either(
    [
        in_a_row([one_of(codepoints.of_text("\r")), one_of(codepoints.of_text("\n"))]),
        one_of(codepoints.VERTICAL),
    ]
).enclosed("(?:")


class Parser(Reader):
    """One pass over one pattern. Methods follow the grammar, outermost first."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self._depth = 0
        self._groups = 0
        self._names: dict[str, int] = {}
        self._open: set[int] = set()
        self._uncertain: set[int] = set()
        self._references: list[tuple[int, int]] = []

    def parse(self) -> Piece:
        """Read all of it, or raise JavaRegexError."""
        piece = either(self._alternatives())
        if self.peek():
            self.refuse("an unmatched ')'", "escape it as \\)")
        for group, start in self._references:
            if group in self._uncertain:  # the two engines forget such groups at different times
                self.refuse(
                    f"a reference to group {group}, which is repeated, atomic or in a look-around",
                    "write out what may stand there",
                    at=start,
                )
        return piece

    def _alternatives(self) -> list[Piece]:
        branches = [self._sequence()]
        while self.take("|"):
            branches.append(self._sequence())
        return branches

    def _sequence(self) -> Piece:
        pieces = []
        while self.peek() not in ("", "|", ")"):
            start, groups_before = self.at, self._groups
            atom = self._atom()
            if atom is None:  # flags: nothing by themselves, so nothing to repeat
                continue
            repeat = self._quantifier()
            if repeat:
                atom = self._repeated(atom, repeat, start)
                self._uncertain.update(range(groups_before + 1, self._groups + 1))
            pieces.append(atom)
        return in_a_row(pieces)

    def _repeated(self, atom: Piece, repeat: Repeat, start: int) -> Piece:
        if atom is _LINE_BREAK:
            self.refuse("a repeated \\R", "name the characters: [\\r\\n]*", at=start)
        if repeat.least > 1 and atom.least == 0 and atom.most != 0 and atom.conditional:
            # Java leaves the loop at the first round that matches nothing, Python does not.
            self.refuse(
                "a repetition of what may match nothing, depending on its neighbours",
                "write the rounds one after the other",
                at=start,
            )
        return repeated(atom, repeat)

    def _quantifier(self) -> Repeat | None:
        bounds: tuple[int, int | None]
        if self.take("?"):
            bounds = (0, 1)
        elif self.take("*"):
            bounds = (0, None)
        elif self.take("+"):
            bounds = (1, None)
        elif self.peek() == "{":
            bounds = self._counts()
        else:
            return None
        return Repeat(*bounds, mood=self.read() if self.peek() in ("?", "+") else "")

    def _counts(self) -> tuple[int, int | None]:
        start = self.at
        found = self.find(_COUNTS)
        if found is None:
            self.refuse("an unfinished repetition '{'", "write {n}, {n,} or {n,m}, or \\{")
        least = int(found[1])
        most = int(found[3]) if found[3] else None if found[2] else least
        if not least <= (_MOST_REPEATS if most is None else most) <= _MOST_REPEATS:
            self.refuse("an impossible repetition", "write {n,m} with n <= m", at=start)
        return least, most

    def _atom(self) -> Piece | None:
        char = self.peek()
        if char == "(":
            return self._group()
        if char == "[":
            return one_of(self.character_class())
        if char == "\\":
            return self._escape()
        if char in "?*+":
            self.refuse(f"a dangling '{char}'", f"escape it as \\{char}")
        if char == "{":
            return EMPTY  # Java lets {n} stand alone: it repeats nothing
        self.at += 1
        if char == ".":
            return one_of(self._dot())
        if char in "^$":
            return assertion(self._line_start() if char == "^" else self._line_end())
        return one_of(self.folded(codepoints.of_text(char)))

    def _dot(self) -> CodePoints:
        if "s" in self.flags:
            return codepoints.ALL
        return ~(codepoints.of_text("\n") if "d" in self.flags else codepoints.LINE_ENDS)

    def _line_start(self) -> str:
        if "m" not in self.flags:
            return r"\A"
        return r"(?:(?!\Z)(?:\A|(?<=\n)))" if "d" in self.flags else _ANY_LINE_START

    def _line_end(self) -> str:
        if "m" not in self.flags:
            return self._last_line_end()
        return r"(?=\Z|\n)" if "d" in self.flags else _ANY_LINE_END

    def _last_line_end(self) -> str:
        return r"(?=\n?\Z)" if "d" in self.flags else _LAST_LINE_END

    def _group(self) -> Piece | None:
        start, flags, groups_before = self.at, self.flags, self._groups
        if self._depth > DEEPEST:
            self.refuse(f"groups nested deeper than {DEEPEST}", "flatten them")
        self.at += 1
        opening = self._opening(start)
        if opening is None:
            return None
        captured = set(range(groups_before + 1, self._groups + 1))
        self._open |= captured
        self._depth += 1
        branches = self._alternatives()
        if not self.take(")"):
            self.refuse("a group never closed", "add ) or write \\(", at=start)
        self._depth -= 1
        self._open -= captured
        self.flags = flags
        if opening in ("(?=", "(?!", "(?<=", "(?<!", "(?>"):
            self._uncertain.update(range(groups_before + 1, self._groups + 1))
        if opening in ("(?<=", "(?<!"):
            return self._look_behind(opening, branches, start)
        body = either(branches)
        if opening in ("(?=", "(?!"):
            return assertion(f"{opening}{body.text})", regular=body.node is not None)
        return body.enclosed(opening)

    def _opening(self, start: int) -> str | None:
        """Read what follows `(`; give Python's opening, or None if it only set flags."""
        for opening in ("?:", "?=", "?!", "?>", "?<=", "?<!"):
            if self.take(opening):
                return f"({opening}"
        if self.take("?<"):
            name = self._group_name()
            if name in self._names:
                self.refuse(f"a second group named {name!r}", "give it another name", at=start)
            self._groups += 1
            self._names[name] = self._groups
            return f"(?P<{name}>"
        if self.take("?"):
            return self._flag_group(start)
        self._groups += 1
        return "("

    def _group_name(self) -> str:
        found = self.find(_GROUP_NAME)
        if found is None:
            self.refuse("a bad group name", "write <name> with ASCII letters and digits")
        return found[1]

    def _flag_group(self, start: int) -> str | None:
        """Read `(?flags)`, good until the enclosing group ends, or `(?flags:`."""
        found = self.find(_FLAG_GROUP)
        if found is None:
            instead = "write (?:...), (?=...), (?<name>...) or one of the flags i d m s"
            self.refuse("an unknown group or flag", instead, at=start)
        wanted, unwanted = set(found[1]), set(found[2] or "")
        for flag in sorted(wanted & _FOREIGN_FLAGS.keys()):
            self.refuse(f"the flag '{flag}'", _FOREIGN_FLAGS[flag], at=start)
        self.flags = (self.flags | wanted) - unwanted
        return "(?:" if found[3] == ":" else None

    def _look_behind(self, opening: str, branches: list[Piece], start: int) -> Piece:
        """Write one look-behind per alternative: Python wants each of a fixed width."""
        if any(branch.least != branch.most for branch in branches):
            self.refuse(
                "a look-behind whose length is not plainly fixed",
                "list the lengths as alternatives: (?<=a|aa)",
                at=start,
            )
        parts = [f"{opening}{branch.text})" for branch in branches]
        text = "|".join(parts) if opening == "(?<=" else "".join(parts)
        return assertion(f"(?:{text})", regular=all(branch.node for branch in branches))

    def _escape(self) -> Piece:
        start = self.at
        self.at += 1
        letter = self.read()
        if letter == "b" and self.text.startswith("{g", self.at):
            self.refuse("a grapheme boundary \\b{g}", "write \\b", at=start)
        if letter in _ANCHORS:
            return assertion(_ANCHORS[letter])
        if letter == "Z":
            return assertion(self._last_line_end())
        if letter == "R":
            return _LINE_BREAK
        if letter == "X":
            self.refuse("a grapheme cluster \\X", "write . or name the characters", at=start)
        if letter == "k":
            return self._reference(self._named_group(start), start)
        if letter.isascii() and letter.isdigit() and letter != "0":
            return self._reference(self._numbered_group(letter), start)
        return one_of(self.escaped(letter, start))

    def _named_group(self, start: int) -> int:
        if not self.take("<"):
            self.refuse("\\k without a name", "write \\k<name>", at=start)
        name = self._group_name()
        if name not in self._names:
            self.refuse(f"a reference to the unknown group {name!r}", "define it first", at=start)
        return self._names[name]

    def _numbered_group(self, digits: str) -> int:
        """Read on while the number still names a group; the rest are ordinary digits."""
        while self.peek() and self.peek() in "0123456789":
            if int(digits + self.peek()) > self._groups:
                break
            digits += self.read()
        return int(digits)

    def _reference(self, group: int, start: int) -> Piece:
        if group > self._groups or group in self._open:
            self.refuse(
                f"a reference to group {group} before its end",
                "close the group before referring to it",
                at=start,
            )
        self._references.append((group, start))
        return reference(group, ignore_case="i" in self.flags)
