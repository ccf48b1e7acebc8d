"""Translated parts of a pattern, and how they are put together.

A piece is the Python text of one part, with what must be known of it to write what stands around
it, and the same part as a node for the automaton if it can be one. Knows nothing of Java's syntax.
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

    `least` and `most` bound the length of what it matches (None: no bound). `conditional` says that
    what it may match depends on its neighbours: it looks around, refers back or never gives back.
    `node` is None for what an automaton cannot follow: references and possessive parts.
    """

    text: str
    min_length: int
    max_length: int | None
    node: RegexNode | None
    context_dependent: bool = False

    def enclose(self, opening: str) -> PatternFragment:
        """Put it between `opening` and `)`; an atomic group never gives back."""
        text = f"{opening}{self.text})"
        if opening == "(?>":
            return self._replace(text=text, node=None, context_dependent=True)
        return self._replace(text=text)


EMPTY_FRAGMENT = PatternFragment("(?:)", 0, 0, Concatenation(()))


class Quantifier(NamedTuple):
    """A quantifier. `mood` is empty (greedy), `?` (reluctant) or `+` (possessive)."""

    min_count: int
    max_count: int | None
    mode: str

    def bounds_text(self) -> str:
        """Write the bounds as Python does."""
        short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((self.min_count, self.max_count))
        return short or f"{{{self.min_count},{'' if self.max_count is None else self.max_count}}}"


def one_of(points: CodePointSet) -> PatternFragment:
    """Match one character of a set."""
    return PatternFragment(points.to_pattern(), 1, 1, points)


def assertion(text: str, *, regular: bool = True) -> PatternFragment:
    """Match nothing, if `text` matches here. `regular` is false if it holds a reference."""
    return PatternFragment(text, 0, 0, Assertion(text) if regular else None, context_dependent=True)


def back_reference(group: int, *, ignore_case: bool) -> PatternFragment:
    """Match again what a group matched."""
    return PatternFragment(
        f"(?{'i' if ignore_case else ''}:\\{group})", 0, None, None, context_dependent=True
    )


def alternate(branches: list[PatternFragment]) -> PatternFragment:
    """Put alternatives side by side."""
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


def concatenate(pieces: list[PatternFragment]) -> PatternFragment:
    """Put pieces one after the other."""
    longest = [piece.max_length for piece in pieces if piece.max_length is not None]
    nodes = [piece.node for piece in pieces if piece.node is not None]
    return PatternFragment(
        "".join(piece.text for piece in pieces),
        sum(piece.min_length for piece in pieces),
        sum(longest) if len(longest) == len(pieces) else None,
        Concatenation(tuple(nodes)) if len(nodes) == len(pieces) else None,
        context_dependent=any(piece.context_dependent for piece in pieces),
    )


def apply_quantifier(atom: PatternFragment, repeat: Quantifier) -> PatternFragment:
    """Apply a quantifier to one atom."""
    # Java sees no bound for a repeated group (it refuses most of them in a look-behind).
    unbounded = atom.max_length is None or repeat.max_count is None or atom.text.startswith("(")
    possessive = repeat.mode == "+"
    if possessive:  # in Java each round is final by itself, not only all of them
        text = f"(?>(?>{atom.text}){repeat.bounds_text()})"
    else:
        bare = atom.max_length != 0  # Python repeats no bare anchor
        text = f"{atom.text if bare else f'(?:{atom.text})'}{repeat.bounds_text()}{repeat.mode}"
    return PatternFragment(
        text,
        atom.min_length * repeat.min_count,
        None if unbounded else repeat.max_count,
        None
        if possessive or atom.node is None
        else Repetition(atom.node, repeat.min_count, repeat.max_count),
        context_dependent=atom.context_dependent or possessive,
    )
