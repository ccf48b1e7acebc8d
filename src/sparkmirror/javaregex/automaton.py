"""A nondeterministic finite automaton, for patterns on which Python's `re` backtracks too long.

`([a-z]+-?)+` against a name of forty letters and a `_` keeps `re` busy for hours, because it tries
every way to divide the letters. Java remembers where it has failed before. The automaton follows
all ways at once, character by character, so the time is proportional to the length of the name
times the size of the pattern.

It returns only whether the whole text matches. It has no captured groups.
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
    """Matches the empty text at positions where `text` matches: an anchor or a look-around."""

    text: str


@dataclass(frozen=True, slots=True)
class Concatenation:
    """The nodes in sequence. Without nodes it matches the empty text."""

    nodes: tuple[RegexNode, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of the nodes."""

    nodes: tuple[RegexNode, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`min_count` to `max_count` times; None is unbounded."""

    node: RegexNode
    min_count: int
    max_count: int | None


RegexNode: TypeAlias = CodePointSet | Assertion | Concatenation | Alternation | Repetition


def max_state_count(node: RegexNode) -> int:
    """Return an upper bound of the number of states of a node."""
    match node:
        case Concatenation(nodes) | Alternation(nodes):
            return 2 + sum(max_state_count(part) for part in nodes)
        case Repetition(part, low, high):
            return 2 + max_state_count(part) * max(1, low + 1 if high is None else high)
        case _:
            return 2


class Automaton:
    """States from 0 to `_accepting_state`.

    A transition consumes one character of a set. An epsilon transition consumes none, and may have
    a condition.
    """

    def __init__(self, node: RegexNode) -> None:
        assert max_state_count(node) <= MAX_STATES
        self._transitions: list[list[tuple[CodePointSet, int]]] = [[]]
        self._epsilon_transitions: list[list[tuple[re.Pattern[str] | None, int]]] = [[]]
        self._accepting_state = self._add(node, 0)
        assert len(self._transitions) <= 1 + max_state_count(node)

    def accepts(self, text: str) -> bool:
        """Return whether the whole text matches."""
        states = self._epsilon_closure({0}, text, 0)
        for at, char in enumerate(text):
            code = ord(char)
            reached = {
                target
                for state in states
                for points, target in self._transitions[state]
                if code in points
            }
            if not reached:
                return False
            states = self._epsilon_closure(reached, text, at + 1)
        return self._accepting_state in states

    def _epsilon_closure(self, states: set[int], text: str, at: int) -> set[int]:
        """Return the states and all states that epsilon transitions reach at position `at`."""
        found, pending = set(states), list(states)
        while pending:
            for condition, target in self._epsilon_transitions[pending.pop()]:
                if target not in found and (condition is None or condition.match(text, at)):
                    found.add(target)
                    pending.append(target)
        return found

    def _new_state(self) -> int:
        self._transitions.append([])
        self._epsilon_transitions.append([])
        return len(self._transitions) - 1

    def _add_epsilon(self, start: int, end: int, condition: re.Pattern[str] | None = None) -> None:
        self._epsilon_transitions[start].append((condition, end))

    def _add(self, node: RegexNode, start: int) -> int:
        """Add the states of a node after `start`. Return the state in which it has matched."""
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
            case Repetition(part, low, high):
                return self._add_repetition(part, low, high, start)

    def _new_branch(self, start: int) -> int:
        """Return a new state after `start`, so that a loop of a branch does not enter another."""
        state = self._new_state()
        self._add_epsilon(start, state)
        return state

    def _add_concatenation(self, nodes: Iterable[RegexNode], start: int) -> int:
        for node in nodes:
            start = self._add(node, start)
        return start

    def _add_repetition(self, part: RegexNode, low: int, high: int | None, start: int) -> int:
        start = self._add_concatenation([part] * low, start)
        if high is None:
            loop = self._new_branch(start)
            self._add_epsilon(self._add(part, loop), loop)
            return loop
        end = self._new_state()
        self._add_epsilon(start, end)
        for _ in range(high - low):
            start = self._add(part, start)
            self._add_epsilon(start, end)
        return end


def walk(node: RegexNode) -> Iterator[RegexNode]:
    """Yield a node and all nodes inside it."""
    yield node
    match node:
        case Concatenation(nodes) | Alternation(nodes):
            for part in nodes:
                yield from walk(part)
        case Repetition(part, _, _):
            yield from walk(part)


def is_ambiguous(node: RegexNode) -> bool:
    """Return whether a node repeats a part that can match in several ways: `re` may take long."""
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
