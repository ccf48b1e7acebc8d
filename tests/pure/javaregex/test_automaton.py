"""The automaton matches as Java does, and does not backtrack where Python's `re` does."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.errors import JavaRegexError
from sparkmirror.javaregex.automaton import (
    MAX_STATES,
    Alternation,
    Automaton,
    Concatenation,
    Repetition,
    is_ambiguous,
    max_state_count,
)
from sparkmirror.javaregex.codepoints import from_text
from sparkmirror.javaregex.parser import JavaRegexParser
from sparkmirror.javaregex.pattern import compile_pattern_list
from tests.support.golden import golden_json

RECORDED: dict[str, Any] = golden_json("regex/java-regex.json")
A, B = from_text("a"), from_text("b")


def automaton_for(pattern: str) -> Automaton | None:
    """Build an automaton for any pattern that can have one, ambiguous or not."""
    try:
        node = JavaRegexParser(pattern).parse().node
    except JavaRegexError:
        return None
    return Automaton(node) if node is not None and max_state_count(node) <= MAX_STATES else None


def test_automaton_matches_recorded_patterns_as_java_does() -> None:
    wrong = []
    checked = 0
    for pattern, matching, others in RECORDED["random"][::2]:
        automaton = automaton_for(pattern)
        if automaton is None:
            continue
        checked += 1
        wrong += [(pattern, text) for text in matching if not automaton.accepts(text)]
        wrong += [(pattern, text) for text in others if automaton.accepts(text)]
    assert wrong == []
    assert checked > 150


@pytest.mark.parametrize(
    ("pattern", "end"),
    [
        ("([a-z]+-?)+", "_"),
        ("^(?:[a-z]+[.-]?)+?$", "_"),
        ("(a|aa)+", "_"),
        ("((a*)*)*", "_"),
        ("(?:.*,)*x", "_"),
        ("(a|b|ab)*c", "_"),
        ("(?!x)(\\w+\\s?)*", "-"),
        ("((a+)b?){1,30}c", "_"),
    ],
    ids=["dash", "anchors", "overlap", "stars", "commas", "choice", "look-around", "bounded"],
)
def test_ambiguous_pattern_does_not_backtrack(pattern: str, end: str) -> None:
    assert not compile_pattern_list([pattern]).matches("a" * 200 + end)


def test_ambiguous_pattern_is_matched_by_an_automaton() -> None:
    names = compile_pattern_list(["([a-z]+-?)+", "x{3}"])
    assert names.automaton is not None
    assert names.matches("orders-of-" + "a" * 200)
    assert names.matches("xxx")


def test_unambiguous_pattern_is_matched_by_re() -> None:
    for pattern in (
        "orders.*",
        "mm2.*\\.internal",
        "(orders|payments)-[0-9]+",
        "[a-z]{2,5}",
        "a++",
    ):
        assert compile_pattern_list([pattern]).automaton is None


def test_pattern_with_too_many_states_is_matched_by_re() -> None:
    assert compile_pattern_list(["((a?){100}){100}"]).automaton is None


def test_repetition_has_a_minimum_and_a_maximum() -> None:
    two_to_four = Automaton(Repetition(A, 2, 4))
    assert [n for n in range(7) if two_to_four.accepts("a" * n)] == [2, 3, 4]
    three_or_more = Automaton(Repetition(A, 3, None))
    assert [n for n in range(7) if three_or_more.accepts("a" * n)] == [3, 4, 5, 6]
    assert Automaton(Repetition(A, 0, 0)).accepts("")


def test_repetition_in_one_branch_does_not_continue_in_another() -> None:
    either_letter = Automaton(Alternation((Repetition(A, 0, None), Repetition(B, 0, None))))
    assert either_letter.accepts("aa")
    assert either_letter.accepts("bb")
    assert not either_letter.accepts("ab")


def test_pattern_is_ambiguous_if_an_unbounded_repetition_contains_a_choice_or_repetition() -> None:
    assert is_ambiguous(Repetition(Repetition(A, 0, None), 1, None))
    assert is_ambiguous(Concatenation((B, Repetition(Alternation((A, B)), 0, None))))
    assert not is_ambiguous(Repetition(Repetition(A, 2, 2), 1, None))
    assert not is_ambiguous(Repetition(Repetition(A, 0, None), 0, 1))
    assert not is_ambiguous(Concatenation((Repetition(A, 0, None), Repetition(B, 0, None))))
