"""Translated parts of a pattern, and their combination.

A fragment has the Python text of one part, the properties that its surroundings need, and the node
for the automaton, if the automaton supports it.
"""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.javaregex.automaton import (
    Alternation,
    Assertion,
    Concatenation,
    RegexNode,
    Repetition,
)
from sparkmirror.javaregex.codepoints import CodePointSet


class PatternFragment(NamedTuple):
    """One part of a pattern.

    `min_length` and `max_length` bound the length of the matched text (None: no bound).
    `context_dependent` says that the match depends on the neighbours: a look-around, a back
    reference, or an atomic or possessive part. `node` is None if the automaton does not support the
    part: back references, atomic and possessive parts.
    """

    text: str
    min_length: int
    max_length: int | None
    node: RegexNode | None
    context_dependent: bool = False

    def enclose(self, opening: str) -> PatternFragment:
        """Return the fragment between `opening` and `)`."""
        text = f"{opening}{self.text})"
        if opening == "(?>":
            return self._replace(text=text, node=None, context_dependent=True)
        return self._replace(text=text)


EMPTY_FRAGMENT = PatternFragment("(?:)", 0, 0, Concatenation(()))


class Quantifier(NamedTuple):
    """A quantifier. `mode` is empty (greedy), `?` (reluctant) or `+` (possessive)."""

    min_count: int
    max_count: int | None
    mode: str

    def bounds_text(self) -> str:
        """Return the bounds in Python's syntax."""
        short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((self.min_count, self.max_count))
        return short or f"{{{self.min_count},{'' if self.max_count is None else self.max_count}}}"


def one_of(points: CodePointSet) -> PatternFragment:
    """Return a fragment that matches one character of a set."""
    return PatternFragment(points.to_pattern(), 1, 1, points)


def assertion(text: str, *, regular: bool = True) -> PatternFragment:
    """Return a fragment that matches the empty text where `text` matches.

    `regular` is false if `text` has a back reference.
    """
    return PatternFragment(text, 0, 0, Assertion(text) if regular else None, context_dependent=True)


def back_reference(group: int, *, ignore_case: bool) -> PatternFragment:
    """Return a fragment that matches the text of a group again."""
    return PatternFragment(
        f"(?{'i' if ignore_case else ''}:\\{group})", 0, None, None, context_dependent=True
    )


def alternate(branches: list[PatternFragment]) -> PatternFragment:
    """Return the alternation of fragments."""
    if len(branches) == 1:
        return branches[0]
    longest = [branch.max_length for branch in branches if branch.max_length is not None]
    nodes = [branch.node for branch in branches if branch.node is not None]
    return PatternFragment(
        "|".join(branch.text for branch in branches),
        min(branch.min_length for branch in branches),
        max(longest) if len(longest) == len(branches) else None,
        Alternation(tuple(nodes)) if len(nodes) == len(branches) else None,
        context_dependent=any(branch.context_dependent for branch in branches),
    )


def concatenate(fragments: list[PatternFragment]) -> PatternFragment:
    """Return the concatenation of fragments."""
    longest = [fragment.max_length for fragment in fragments if fragment.max_length is not None]
    nodes = [fragment.node for fragment in fragments if fragment.node is not None]
    return PatternFragment(
        "".join(fragment.text for fragment in fragments),
        sum(fragment.min_length for fragment in fragments),
        sum(longest) if len(longest) == len(fragments) else None,
        Concatenation(tuple(nodes)) if len(nodes) == len(fragments) else None,
        context_dependent=any(fragment.context_dependent for fragment in fragments),
    )


def apply_quantifier(atom: PatternFragment, repeat: Quantifier) -> PatternFragment:
    """Return the repetition of one atom."""
    # Java computes no bound for a repeated group (it refuses most of them in a look-behind).
    unbounded = atom.max_length is None or repeat.max_count is None or atom.text.startswith("(")
    possessive = repeat.mode == "+"
    if possessive:  # in Java each iteration is atomic, not only the whole repetition
        text = f"(?>(?>{atom.text}){repeat.bounds_text()})"
    else:
        is_anchor = atom.max_length == 0  # Python repeats an anchor only inside a group
        repeated = f"(?:{atom.text})" if is_anchor else atom.text
        text = f"{repeated}{repeat.bounds_text()}{repeat.mode}"
    return PatternFragment(
        text,
        atom.min_length * repeat.min_count,
        None if unbounded else repeat.max_count,
        None
        if possessive or atom.node is None
        else Repetition(atom.node, repeat.min_count, repeat.max_count),
        context_dependent=atom.context_dependent or possessive,
    )
