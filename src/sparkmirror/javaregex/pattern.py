"""Java's regular expressions, given Java's meaning in Python.

Patterns in MirrorMaker 2 files are Java's (`topics`, `groups`, excludes). A pattern is parsed by
Java's grammar and written again with every difference made explicit: each character becomes a set
of code points, each anchor a look-around, each flag is applied where it holds. So the result gives
Java's answer to `Pattern.matches`, or the pattern is refused with a sentence that names the
construct, its position and what to write instead. Recorded answers of a real Java are in
`tests/golden/regex`.

`\\b` counts ASCII letters, digits and `_` as word characters, as Java does since 19; Java 17 also
counts other letters. Topic names are ASCII, so the two cannot differ on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from sparkmirror.javaregex.automaton import MAX_STATES, Automaton, is_ambiguous, max_state_count
from sparkmirror.javaregex.parser import JavaRegexParser


def compile_java_pattern(pattern: str) -> re.Pattern[str]:
    """Translate one pattern, groups and all; use it with `fullmatch`. Raises JavaRegexError.

    Where only the yes or no matters, `compile_list` is the safer choice: it does not get lost in
    patterns such as `([a-z]+-?)+`.
    """
    return re.compile(JavaRegexParser(pattern).parse().text, re.ASCII)


@dataclass(frozen=True, slots=True)
class NameMatcher:
    """Says whether a whole name matches. The automaton, if any, answers in its own time."""

    pattern: re.Pattern[str]
    automaton: Automaton | None

    def matches(self, name: str) -> bool:
        """Judge one name."""
        if self.automaton is not None:
            return self.automaton.accepts(name)
        return self.pattern.fullmatch(name) is not None


_MATCHES_NOTHING = NameMatcher(re.compile("(?!)"), None)


def compile_pattern_list(items: Iterable[str]) -> NameMatcher:
    """Join with `|`, without grouping, as MirrorMaker 2 does; an empty list matches nothing."""
    listed = tuple(items)
    return _compile_joined("|".join(listed)) if listed else _MATCHES_NOTHING


@lru_cache(maxsize=64)
def _compile_joined(joined: str) -> NameMatcher:
    """Compile once what every connector of every flow has: a long list takes seconds."""
    piece = JavaRegexParser(joined).parse()
    pattern = re.compile(piece.text, re.ASCII)
    node = piece.node
    if node is None or not is_ambiguous(node) or max_state_count(node) > MAX_STATES:
        return NameMatcher(pattern, None)
    return NameMatcher(pattern, Automaton(node))
