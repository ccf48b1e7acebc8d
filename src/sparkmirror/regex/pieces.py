"""Translated parts of a pattern, and how they are put together.

A piece is the Python text of one part, with what must be known of it to write what stands around
it, and the same part as a node for the automaton if it can be one. Knows nothing of Java's syntax.
"""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.regex.automaton import Choice, Condition, Node, Repetition, Row
from sparkmirror.regex.codepoints import CodePoints


class Piece(NamedTuple):
    """One part of a pattern.

    `least` and `most` bound the length of what it matches (None: no bound). `conditional` says that
    what it may match depends on its neighbours: it looks around, refers back or never gives back.
    `node` is None for what an automaton cannot follow: references and possessive parts.
    """

    text: str
    least: int
    most: int | None
    node: Node | None
    conditional: bool = False

    def enclosed(self, opening: str) -> Piece:
        """Put it between `opening` and `)`; an atomic group never gives back."""
        text = f"{opening}{self.text})"
        if opening == "(?>":
            return self._replace(text=text, node=None, conditional=True)
        return self._replace(text=text)


EMPTY = Piece("(?:)", 0, 0, Row(()))


class Repeat(NamedTuple):
    """A quantifier. `mood` is empty (greedy), `?` (reluctant) or `+` (possessive)."""

    least: int
    most: int | None
    mood: str

    def bounds(self) -> str:
        """Write the bounds as Python does."""
        short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((self.least, self.most))
        return short or f"{{{self.least},{'' if self.most is None else self.most}}}"


def one_of(points: CodePoints) -> Piece:
    """Match one character of a set."""
    return Piece(points.pattern(), 1, 1, points)


def assertion(text: str, *, regular: bool = True) -> Piece:
    """Match nothing, if `text` matches here. `regular` is false if it holds a reference."""
    return Piece(text, 0, 0, Condition(text) if regular else None, conditional=True)


def reference(group: int, *, ignore_case: bool) -> Piece:
    """Match again what a group matched."""
    return Piece(f"(?{'i' if ignore_case else ''}:\\{group})", 0, None, None, conditional=True)


def either(branches: list[Piece]) -> Piece:
    """Put alternatives side by side."""
    if len(branches) == 1:
        return branches[0]
    longest = [branch.most for branch in branches if branch.most is not None]
    nodes = [branch.node for branch in branches if branch.node is not None]
    return Piece(
        "|".join(branch.text for branch in branches),
        min(branch.least for branch in branches),
        max(longest) if len(longest) == len(branches) else None,
        Choice(tuple(nodes)) if len(nodes) == len(branches) else None,
        conditional=any(branch.conditional for branch in branches),
    )


def in_a_row(pieces: list[Piece]) -> Piece:
    """Put pieces one after the other."""
    longest = [piece.most for piece in pieces if piece.most is not None]
    nodes = [piece.node for piece in pieces if piece.node is not None]
    return Piece(
        "".join(piece.text for piece in pieces),
        sum(piece.least for piece in pieces),
        sum(longest) if len(longest) == len(pieces) else None,
        Row(tuple(nodes)) if len(nodes) == len(pieces) else None,
        conditional=any(piece.conditional for piece in pieces),
    )


def repeated(atom: Piece, repeat: Repeat) -> Piece:
    """Apply a quantifier to one atom."""
    # Java sees no bound for a repeated group (it refuses most of them in a look-behind).
    unbounded = atom.most is None or repeat.most is None or atom.text.startswith("(")
    possessive = repeat.mood == "+"
    if possessive:  # in Java each round is final by itself, not only all of them
        text = f"(?>(?>{atom.text}){repeat.bounds()})"
    else:
        bare = atom.most != 0  # Python repeats no bare anchor
        text = f"{atom.text if bare else f'(?:{atom.text})'}{repeat.bounds()}{repeat.mood}"
    return Piece(
        text,
        atom.least * repeat.least,
        None if unbounded else repeat.most,
        None
        if possessive or atom.node is None
        else Repetition(atom.node, repeat.least, repeat.most),
        conditional=atom.conditional or possessive,
    )
