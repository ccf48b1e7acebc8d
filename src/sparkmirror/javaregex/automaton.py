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

from sparkmirror.javaregex.codepoints import CodePointSet

MAX_STATES = 5000


@dataclass(frozen=True, slots=True)
class Assertion:
    """Matches nothing, where the pattern `text` matches: an anchor or a look-around."""

    text: str


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after the other; an empty row matches the empty text."""

    nodes: tuple[RegexNode, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several."""

    nodes: tuple[RegexNode, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`least` to `most` times; None is without end."""

    node: RegexNode
    min_count: int
    max_count: int | None


RegexNode: TypeAlias = CodePointSet | Assertion | Concatenation | Alternation | Repetition


def max_state_count(node: RegexNode) -> int:
    """Bound the number of states that a node will need."""
    match node:
        case Concatenation(nodes) | Alternation(nodes):
            return 2 + sum(max_state_count(part) for part in nodes)
        case Repetition(part, least, most):
            return 2 + max_state_count(part) * max(1, least + 1 if most is None else most)
        case _:
            return 2


class Automaton:
    """A net of states from 0 to `_end`.

    `_steps` lead on over a character of a set, `_jumps` for free, some under a condition.
    """

    def __init__(self, node: RegexNode) -> None:
        assert max_state_count(node) <= MAX_STATES
        self._transitions: list[list[tuple[CodePointSet, int]]] = [[]]
        self._epsilon_transitions: list[list[tuple[re.Pattern[str] | None, int]]] = [[]]
        self._accepting_state = self._add(node, 0)
        assert len(self._transitions) <= 1 + max_state_count(node)

    def accepts(self, text: str) -> bool:
        """Say whether the whole text matches."""
        states = self._epsilon_closure({0}, text, 0)
        for at, char in enumerate(text):
            code = ord(char)
            stepped = {
                onward
                for state in states
                for points, onward in self._transitions[state]
                if code in points
            }
            if not stepped:
                return False
            states = self._epsilon_closure(stepped, text, at + 1)
        return self._accepting_state in states

    def _epsilon_closure(self, states: set[int], text: str, at: int) -> set[int]:
        """Follow jumps as far as they lead from a place in the text."""
        found, waiting = set(states), list(states)
        while waiting:
            for condition, onward in self._epsilon_transitions[waiting.pop()]:
                if onward not in found and (condition is None or condition.match(text, at)):
                    found.add(onward)
                    waiting.append(onward)
        return found

    def _new_state(self) -> int:
        self._transitions.append([])
        self._epsilon_transitions.append([])
        return len(self._transitions) - 1

    def _add_epsilon(self, start: int, end: int, condition: re.Pattern[str] | None = None) -> None:
        self._epsilon_transitions[start].append((condition, end))

    def _add(self, node: RegexNode, start: int) -> int:
        """Build a node behind `start`; return the state in which it has matched."""
        match node:
            case CodePointSet():
                end = self._new_state()
                self._transitions[start].append((node, end))
                return end
            case Assertion(text):
                end = self._new_state()
                self._add_epsilon(start, end, re.compile(text, re.ASCII))
                return end
            case Concatenation(nodes):
                return self._add_concatenation(nodes, start)
            case Alternation(nodes):
                end = self._new_state()
                for part in nodes:
                    self._add_epsilon(self._add(part, self._new_branch(start)), end)
                return end
            case Repetition(part, least, most):
                return self._add_repetition(part, least, most, start)

    def _new_branch(self, start: int) -> int:
        """Begin a way of its own: what loops in one branch must not lead into another."""
        state = self._new_state()
        self._add_epsilon(start, state)
        return state

    def _add_concatenation(self, nodes: Iterable[RegexNode], start: int) -> int:
        for node in nodes:
            start = self._add(node, start)
        return start

    def _add_repetition(self, part: RegexNode, least: int, most: int | None, start: int) -> int:
        start = self._add_concatenation([part] * least, start)
        if most is None:
            loop = self._new_branch(start)
            self._add_epsilon(self._add(part, loop), loop)
            return loop
        end = self._new_state()
        self._add_epsilon(start, end)
        for _ in range(most - least):
            start = self._add(part, start)
            self._add_epsilon(start, end)
        return end


def walk(node: RegexNode) -> Iterator[RegexNode]:
    """Walk a node and everything in it."""
    yield node
    match node:
        case Concatenation(nodes) | Alternation(nodes):
            for part in nodes:
                yield from walk(part)
        case Repetition(part, _, _):
            yield from walk(part)


def is_ambiguous(node: RegexNode) -> bool:
    """Tell nodes that repeat what may itself match in several ways: where `re` may be lost."""
    return any(
        isinstance(loop, Repetition)
        and loop.max_count not in (0, 1)
        and any(
            isinstance(part, Alternation)
            or (isinstance(part, Repetition) and part.min_count != part.max_count)
            for part in walk(loop.node)
        )
        for loop in walk(node)
    )
