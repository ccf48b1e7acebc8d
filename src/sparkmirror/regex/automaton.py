"""Matching without going back: for patterns on which Python's `re` could take for ever.

`([a-z]+-?)+` against a name of forty letters and a `_` keeps `re` busy for hours, because there
are countless ways to cut up the letters and it tries them all. Java remembers where it has failed
before. Here all ways are followed at once, character by character, so the time grows with the
length of the name and of the pattern only.

Knows sets of characters, sequence, choice, repetition and conditions on a place in the text;
nothing of syntax. What a pattern captured is not known, only whether it matches as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from sparkmirror.regex.codepoints import CodePoints

MOST_STATES = 5000


@dataclass(frozen=True, slots=True)
class Condition:
    """Matches nothing, where the pattern `text` matches: an anchor or a look-around."""

    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One after the other; an empty row matches the empty text."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`least` to `most` times; None is without end."""

    node: Node
    least: int
    most: int | None


Node: TypeAlias = CodePoints | Condition | Row | Choice | Repetition


def size(node: Node) -> int:
    """Bound the number of states that a node will need."""
    match node:
        case Row(nodes) | Choice(nodes):
            return 2 + sum(size(part) for part in nodes)
        case Repetition(part, least, most):
            return 2 + size(part) * max(1, least + 1 if most is None else most)
        case _:
            return 2


class Automaton:
    """A net of states from 0 to `_end`.

    `_steps` lead on over a character of a set, `_jumps` for free, some under a condition.
    """

    def __init__(self, node: Node) -> None:
        assert size(node) <= MOST_STATES
        self._steps: list[list[tuple[CodePoints, int]]] = [[]]
        self._jumps: list[list[tuple[re.Pattern[str] | None, int]]] = [[]]
        self._end = self._add(node, 0)
        assert len(self._steps) <= 1 + size(node)

    def accepts(self, text: str) -> bool:
        """Say whether the whole text matches."""
        states = self._reached({0}, text, 0)
        for at, char in enumerate(text):
            code = ord(char)
            stepped = {
                onward
                for state in states
                for points, onward in self._steps[state]
                if code in points
            }
            if not stepped:
                return False
            states = self._reached(stepped, text, at + 1)
        return self._end in states

    def _reached(self, states: set[int], text: str, at: int) -> set[int]:
        """Follow jumps as far as they lead from a place in the text."""
        found, waiting = set(states), list(states)
        while waiting:
            for condition, onward in self._jumps[waiting.pop()]:
                if onward not in found and (condition is None or condition.match(text, at)):
                    found.add(onward)
                    waiting.append(onward)
        return found

    def _state(self) -> int:
        self._steps.append([])
        self._jumps.append([])
        return len(self._steps) - 1

    def _jump(self, start: int, end: int, condition: re.Pattern[str] | None = None) -> None:
        self._jumps[start].append((condition, end))

    def _add(self, node: Node, start: int) -> int:
        """Build a node behind `start`; return the state in which it has matched."""
        match node:
            case CodePoints():
                end = self._state()
                self._steps[start].append((node, end))
                return end
            case Condition(text):
                end = self._state()
                self._jump(start, end, re.compile(text, re.ASCII))
                return end
            case Row(nodes):
                return self._add_row(nodes, start)
            case Choice(nodes):
                end = self._state()
                for part in nodes:
                    self._jump(self._add(part, self._fork(start)), end)
                return end
            case Repetition(part, least, most):
                return self._add_repetition(part, least, most, start)

    def _fork(self, start: int) -> int:
        """Begin a way of its own: what loops in one branch must not lead into another."""
        state = self._state()
        self._jump(start, state)
        return state

    def _add_row(self, nodes: Iterable[Node], start: int) -> int:
        for node in nodes:
            start = self._add(node, start)
        return start

    def _add_repetition(self, part: Node, least: int, most: int | None, start: int) -> int:
        start = self._add_row([part] * least, start)
        if most is None:
            loop = self._fork(start)
            self._jump(self._add(part, loop), loop)
            return loop
        end = self._state()
        self._jump(start, end)
        for _ in range(most - least):
            start = self._add(part, start)
            self._jump(start, end)
        return end


def parts(node: Node) -> Iterator[Node]:
    """Walk a node and everything in it."""
    yield node
    match node:
        case Row(nodes) | Choice(nodes):
            for part in nodes:
                yield from parts(part)
        case Repetition(part, _, _):
            yield from parts(part)


def is_ambiguous(node: Node) -> bool:
    """Tell nodes that repeat what may itself match in several ways: where `re` may be lost."""
    return any(
        isinstance(loop, Repetition)
        and loop.most not in (0, 1)
        and any(
            isinstance(part, Choice) or (isinstance(part, Repetition) and part.least != part.most)
            for part in parts(loop.node)
        )
        for loop in parts(node)
    )
