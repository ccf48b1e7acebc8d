"""Translates Java's regular expressions to Python's, with Java's meaning.

Patterns in MirrorMaker 2 files are Java's (`topics`, `groups`, excludes). A pattern is parsed with
Java's grammar and translated: each character becomes a set of code points, each anchor a
look-around, and flags are applied where they are in effect. The result matches as Java's
`Pattern.matches`. A pattern that cannot be translated is refused; the error names the construct,
its position and what to write instead. `tests/golden/regex` has recorded results of Java.

For `\\b`, ASCII letters, digits and `_` are word characters, as in Java 19 and later. Java 17 has
other letters too. Topic names are ASCII, so both give the same result for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from sparkmirror.javaregex.automaton import MAX_STATES, Automaton, is_ambiguous, max_state_count
from sparkmirror.javaregex.parser import JavaRegexParser


def compile_java_pattern(pattern: str) -> re.Pattern[str]:
    """Return the translation of one pattern with its groups, for `fullmatch`.

    Raises JavaRegexError. If groups are not needed, use `compile_pattern_list`: it is also fast for
    patterns such as `([a-z]+-?)+`.
    """
    return re.compile(JavaRegexParser(pattern).parse().text, re.ASCII)


@dataclass(frozen=True, slots=True)
class NameMatcher:
    """Matches whole names, with the automaton if there is one."""

    pattern: re.Pattern[str]
    automaton: Automaton | None

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        if self.automaton is not None:
            return self.automaton.accepts(name)
        return self.pattern.fullmatch(name) is not None


_MATCHES_NOTHING = NameMatcher(re.compile("(?!)"), None)


def compile_pattern_list(items: Iterable[str]) -> NameMatcher:
    """Return a matcher for the patterns joined with `|`, without groups, as in MirrorMaker 2.

    An empty list matches no name. Raises JavaRegexError.
    """
    patterns = tuple(items)
    return _compile_joined("|".join(patterns)) if patterns else _MATCHES_NOTHING


@lru_cache(maxsize=64)
def _compile_joined(joined: str) -> NameMatcher:
    """Compile and cache: a long list takes seconds, and every connector of a flow has the same."""
    fragment = JavaRegexParser(joined).parse()
    pattern = re.compile(fragment.text, re.ASCII)
    node = fragment.node
    if node is None or not is_ambiguous(node) or max_state_count(node) > MAX_STATES:
        return NameMatcher(pattern, None)
    return NameMatcher(pattern, Automaton(node))
