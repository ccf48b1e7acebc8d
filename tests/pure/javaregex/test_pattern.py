"""Patterns match as recorded from java.util.regex."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from sparkmirror.errors import JavaRegexError
from sparkmirror.javaregex.pattern import compile_java_pattern, compile_pattern_list
from tests.support.golden import golden_json

RECORDED: dict[str, Any] = golden_json("regex/java-regex.json")
NAMES: list[str] = RECORDED["names"]
ACCEPTED: list[tuple[str, str]] = RECORDED["accepted"]
REFUSED_BY_JAVA: list[str] = RECORDED["refused_by_java"]
REFUSED_HERE: list[tuple[str, str]] = RECORDED["refused_here"]
RANDOM: list[tuple[str, list[str] | None, list[str]]] = RECORDED["random"]


def compile_or_none(pattern: str) -> re.Pattern[str] | None:
    try:
        return compile_java_pattern(pattern)
    except JavaRegexError:
        return None


def test_accepted_patterns_match_as_in_java() -> None:
    wrong = []
    for pattern, answers in ACCEPTED:
        translated = compile_java_pattern(pattern)
        for name, answer in zip(NAMES, answers, strict=True):
            if "\\b" in pattern.lower() and not name.isascii():
                continue  # Java 17 and 19 differ there
            if (translated.fullmatch(name) is not None) is not (answer == "1"):
                wrong.append((pattern, name))
    assert wrong == []


def test_patterns_that_java_rejects_are_rejected() -> None:
    assert [pattern for pattern in REFUSED_BY_JAVA if compile_or_none(pattern)] == []


def test_error_names_a_construct_that_python_lacks() -> None:
    for pattern, construct in REFUSED_HERE:
        with pytest.raises(JavaRegexError, match=re.escape(construct)):
            compile_java_pattern(pattern)


def test_random_patterns_match_as_in_java_or_are_rejected() -> None:
    wrong = []
    checked = 0
    for pattern, matching, others in RANDOM:
        translated = compile_or_none(pattern)
        if translated is None:
            continue
        if matching is None:
            wrong.append((pattern, "Java refuses it"))
            continue
        checked += 1
        wrong += [(pattern, text) for text in matching if not translated.fullmatch(text)]
        wrong += [(pattern, text) for text in others if translated.fullmatch(text)]
    assert wrong == []
    assert checked > 600


def test_list_is_joined_without_grouping() -> None:
    names = compile_pattern_list(["a", "b(?i)c", "d"])
    assert [name for name in ("a", "A", "bC", "D", "abcd") if names.matches(name)] == [
        "a",
        "bC",
        "D",
    ]


def test_empty_list_matches_nothing() -> None:
    assert not any(compile_pattern_list([]).matches(name) for name in ("", "a"))


def test_list_of_one_empty_item_matches_the_empty_name() -> None:
    names = compile_pattern_list([""])
    assert names.matches("")
    assert not names.matches("a")


def test_groups_keep_their_numbers_and_names() -> None:
    found = compile_java_pattern("(a|b)(?:x)(?<rest>[c-e]+)(?i)(f)?").fullmatch("bxcdeF")
    assert found is not None
    assert found.groups() == ("b", "cde", "F")
    assert found["rest"] == "cde"


def test_error_has_the_position_in_the_original_pattern() -> None:
    with pytest.raises(JavaRegexError) as caught:
        compile_java_pattern("\\Qa.b\\E**")
    assert caught.value.position == 8
    assert str(caught.value) == (
        "pattern '\\Qa.b\\E**' has a dangling '*' at position 8; escape it as \\*"
    )


@pytest.mark.parametrize("opening", ["(", "[", "(?:", "(?="])
def test_too_deep_nesting_is_rejected(opening: str) -> None:
    with pytest.raises(JavaRegexError, match="nested deeper than"):
        compile_java_pattern(opening * 5000)


def test_deepest_allowed_nesting_is_accepted() -> None:
    assert compile_java_pattern("(" * 100 + "a" + ")" * 100).fullmatch("a")
    assert compile_java_pattern("[" * 100 + "a" + "]" * 100).fullmatch("a")


def test_largest_repetition_is_that_of_java() -> None:
    assert compile_java_pattern("a{0,2147483647}").fullmatch("aaa")
    with pytest.raises(JavaRegexError, match="impossible repetition"):
        compile_java_pattern("a{0,2147483648}")
    with pytest.raises(JavaRegexError, match="repetition"):
        compile_java_pattern(f"a{{{'9' * 5000}}}")
    assert compile_java_pattern(f"a{{{'0' * 5000}2,003}}").fullmatch("aaa")


def test_error_can_be_pickled() -> None:
    with pytest.raises(JavaRegexError) as caught:
        compile_java_pattern("[a")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)


def test_equal_pattern_lists_are_compiled_once() -> None:
    assert compile_pattern_list(["orders", "pay.*"]) is compile_pattern_list(
        iter(("orders", "pay.*"))
    )
