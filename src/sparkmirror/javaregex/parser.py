"""The parser of Java's grammar: groups, anchors, flags, quantifiers, references.

It reads a pattern once, from left to right, and returns one fragment. It refuses what Java refuses,
and what Python cannot match with Java's meaning.
"""

from __future__ import annotations

import re

from sparkmirror.javaregex import codepoints
from sparkmirror.javaregex.codepoints import CodePointSet
from sparkmirror.javaregex.fragment import (
    EMPTY_FRAGMENT,
    PatternFragment,
    Quantifier,
    alternate,
    apply_quantifier,
    assertion,
    back_reference,
    concatenate,
    one_of,
)
from sparkmirror.javaregex.pattern_reader import MAX_NESTING, PatternReader

_MAX_REPEATS = 2**31 - 1

_GROUP_NAME = re.compile("([a-zA-Z][a-zA-Z0-9]*)>")
_FLAG_GROUP = re.compile("([idmsuxUc]*)(-[idmsuxUc]*)?([:)])")
_REPEAT_BOUNDS = re.compile(r"\{0*([0-9]{1,12})(?:(,)(?:0*([0-9]{1,12}))?)?\}")
_UNSUPPORTED_FLAGS = {
    "x": "write the pattern without white space and comments",
    "u": "list both cases of the letters you mean, as in [Éé]",
    "U": "name the characters you mean, as in [\\p{L}\\p{Nd}_] for \\w",
    "c": "write the composed and the decomposed form with |",
}

_LAST_LINE_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_ANY_LINE_END = r"(?=\Z|(?<!\r)\n|[\r\x85\u2028\u2029])"
_ANY_LINE_START = r"(?:(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n)))"
_ANCHORS = {"A": r"\A", "G": r"\A", "b": r"\b", "B": r"(?!\b)", "z": r"\Z"}
_LINE_BREAK = alternate(
    [
        concatenate([one_of(codepoints.from_text("\r")), one_of(codepoints.from_text("\n"))]),
        one_of(codepoints.VERTICAL_SPACE),
    ]
).enclose("(?:")


class JavaRegexParser(PatternReader):
    """One pass over one pattern. Methods follow the grammar, outermost first."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self._depth = 0
        self._group_count = 0
        self._group_numbers: dict[str, int] = {}
        self._open_groups: set[int] = set()
        self._unreferable_groups: set[int] = set()
        self._references: list[tuple[int, int]] = []

    def parse(self) -> PatternFragment:
        """Return the fragment of the whole pattern. Raises JavaRegexError."""
        fragment = alternate(self._alternatives())
        if self.peek():
            self.fail("an unmatched ')'", "escape it as \\)")
        for group, start in self._references:
            # Java and Python clear such groups at different times.
            if group in self._unreferable_groups:
                self.fail(
                    f"a reference to group {group}, which is repeated, atomic or in a look-around",
                    "write out what may stand there",
                    at=start,
                )
        return fragment

    def _alternatives(self) -> list[PatternFragment]:
        branches = [self._sequence()]
        while self.accept("|"):
            branches.append(self._sequence())
        return branches

    def _sequence(self) -> PatternFragment:
        fragments = []
        while self.peek() not in ("", "|", ")"):
            start, groups_before = self.position, self._group_count
            atom = self._atom()
            if atom is None:  # flags match no text, so there is nothing to repeat
                continue
            repeat = self._quantifier()
            if repeat:
                atom = self._apply_quantifier(atom, repeat, start)
                self._unreferable_groups.update(range(groups_before + 1, self._group_count + 1))
            fragments.append(atom)
        return concatenate(fragments)

    def _apply_quantifier(
        self, atom: PatternFragment, repeat: Quantifier, start: int
    ) -> PatternFragment:
        if atom is _LINE_BREAK:
            self.fail("a repeated \\R", "name the characters: [\\r\\n]*", at=start)
        if (
            repeat.min_count > 1
            and atom.min_length == 0
            and atom.max_length != 0
            and atom.context_dependent
        ):
            # Java ends the loop at the first iteration that matches no text; Python does not.
            self.fail(
                "a repetition of what may match nothing, depending on its neighbours",
                "write the rounds one after the other",
                at=start,
            )
        return apply_quantifier(atom, repeat)

    def _quantifier(self) -> Quantifier | None:
        bounds: tuple[int, int | None]
        if self.accept("?"):
            bounds = (0, 1)
        elif self.accept("*"):
            bounds = (0, None)
        elif self.accept("+"):
            bounds = (1, None)
        elif self.peek() == "{":
            bounds = self._repeat_bounds()
        else:
            return None
        return Quantifier(*bounds, mode=self.read() if self.peek() in ("?", "+") else "")

    def _repeat_bounds(self) -> tuple[int, int | None]:
        start = self.position
        found = self.accept_match(_REPEAT_BOUNDS)
        if found is None:
            self.fail("an unfinished repetition '{'", "write {n}, {n,} or {n,m}, or \\{")
        low = int(found[1])
        high = int(found[3]) if found[3] else None if found[2] else low
        if not low <= (_MAX_REPEATS if high is None else high) <= _MAX_REPEATS:
            self.fail("an impossible repetition", "write {n,m} with n <= m", at=start)
        return low, high

    def _atom(self) -> PatternFragment | None:
        char = self.peek()
        if char == "(":
            return self._group()
        if char == "[":
            return one_of(self.read_character_class())
        if char == "\\":
            return self._escape()
        if char in "?*+":
            self.fail(f"a dangling '{char}'", f"escape it as \\{char}")
        if char == "{":
            return EMPTY_FRAGMENT  # Java accepts {n} without an atom: it repeats the empty text
        self.position += 1
        if char == ".":
            return one_of(self._dot())
        if char in "^$":
            return assertion(self._line_start() if char == "^" else self._line_end())
        return one_of(self.apply_case_flag(codepoints.from_text(char)))

    def _dot(self) -> CodePointSet:
        if "s" in self.flags:
            return codepoints.ALL_CODE_POINTS
        return ~(codepoints.from_text("\n") if "d" in self.flags else codepoints.LINE_TERMINATORS)

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

    def _group(self) -> PatternFragment | None:
        start, flags, groups_before = self.position, self.flags, self._group_count
        if self._depth > MAX_NESTING:
            self.fail(f"groups nested deeper than {MAX_NESTING}", "flatten them")
        self.position += 1
        opening = self._group_opening(start)
        if opening is None:
            return None
        captured = set(range(groups_before + 1, self._group_count + 1))
        self._open_groups |= captured
        self._depth += 1
        branches = self._alternatives()
        if not self.accept(")"):
            self.fail("a group never closed", "add ) or write \\(", at=start)
        self._depth -= 1
        self._open_groups -= captured
        self.flags = flags
        if opening in ("(?=", "(?!", "(?<=", "(?<!", "(?>"):
            self._unreferable_groups.update(range(groups_before + 1, self._group_count + 1))
        if opening in ("(?<=", "(?<!"):
            return self._look_behind(opening, branches, start)
        body = alternate(branches)
        if opening in ("(?=", "(?!"):
            return assertion(f"{opening}{body.text})", regular=body.node is not None)
        return body.enclose(opening)

    def _group_opening(self, start: int) -> str | None:
        """Read the text after `(`. Return Python's opening, or None if it only sets flags."""
        for opening in ("?:", "?=", "?!", "?>", "?<=", "?<!"):
            if self.accept(opening):
                return f"({opening}"
        if self.accept("?<"):
            name = self._group_name()
            if name in self._group_numbers:
                self.fail(f"a second group named {name!r}", "give it another name", at=start)
            self._group_count += 1
            self._group_numbers[name] = self._group_count
            return f"(?P<{name}>"
        if self.accept("?"):
            return self._flag_group(start)
        self._group_count += 1
        return "("

    def _group_name(self) -> str:
        found = self.accept_match(_GROUP_NAME)
        if found is None:
            self.fail("a bad group name", "write <name> with ASCII letters and digits")
        return found[1]

    def _flag_group(self, start: int) -> str | None:
        """Read `(?flags)`, which applies up to the end of the enclosing group, or `(?flags:`."""
        found = self.accept_match(_FLAG_GROUP)
        if found is None:
            instead = "write (?:...), (?=...), (?<name>...) or one of the flags i d m s"
            self.fail("an unknown group or flag", instead, at=start)
        turned_on, turned_off = set(found[1]), set(found[2] or "")
        for flag in sorted(turned_on & _UNSUPPORTED_FLAGS.keys()):
            self.fail(f"the flag '{flag}'", _UNSUPPORTED_FLAGS[flag], at=start)
        self.flags = (self.flags | turned_on) - turned_off
        return "(?:" if found[3] == ":" else None

    def _look_behind(
        self, opening: str, branches: list[PatternFragment], start: int
    ) -> PatternFragment:
        """Return one look-behind per alternative, because Python requires a fixed width."""
        if any(branch.min_length != branch.max_length for branch in branches):
            self.fail(
                "a look-behind whose length is not plainly fixed",
                "list the lengths as alternatives: (?<=a|aa)",
                at=start,
            )
        parts = [f"{opening}{branch.text})" for branch in branches]
        text = "|".join(parts) if opening == "(?<=" else "".join(parts)
        return assertion(f"(?:{text})", regular=all(branch.node for branch in branches))

    def _escape(self) -> PatternFragment:
        start = self.position
        self.position += 1
        letter = self.read()
        if letter == "b" and self.text.startswith("{g", self.position):
            self.fail("a grapheme boundary \\b{g}", "write \\b", at=start)
        if letter in _ANCHORS:
            return assertion(_ANCHORS[letter])
        if letter == "Z":
            return assertion(self._last_line_end())
        if letter == "R":
            return _LINE_BREAK
        if letter == "X":
            self.fail("a grapheme cluster \\X", "write . or name the characters", at=start)
        if letter == "k":
            return self._reference(self._named_group(start), start)
        if letter.isascii() and letter.isdigit() and letter != "0":
            return self._reference(self._numbered_group(letter), start)
        return one_of(self.read_escape(letter, start))

    def _named_group(self, start: int) -> int:
        if not self.accept("<"):
            self.fail("\\k without a name", "write \\k<name>", at=start)
        name = self._group_name()
        if name not in self._group_numbers:
            self.fail(f"a reference to the unknown group {name!r}", "define it first", at=start)
        return self._group_numbers[name]

    def _numbered_group(self, digits: str) -> int:
        """Read digits while the number is that of a group. Further digits are ordinary text."""
        while self.peek() and self.peek() in "0123456789":
            if int(digits + self.peek()) > self._group_count:
                break
            digits += self.read()
        return int(digits)

    def _reference(self, group: int, start: int) -> PatternFragment:
        if group > self._group_count or group in self._open_groups:
            self.fail(
                f"a reference to group {group} before its end",
                "close the group before referring to it",
                at=start,
            )
        self._references.append((group, start))
        return back_reference(group, ignore_case="i" in self.flags)
