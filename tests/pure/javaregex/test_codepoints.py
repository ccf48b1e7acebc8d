"""Sets of code points, compared with Python's sets."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.javaregex.codepoints import (
    ALL_CODE_POINTS,
    NO_CODE_POINTS,
    CodePointSet,
    from_ranges,
    from_text,
    named_class,
)

LETTERS = "".join(map(chr, range(0x30, 0x80)))
texts = st.text(LETTERS, max_size=12)


def chars(points: CodePointSet) -> set[str]:
    return {char for char in LETTERS if ord(char) in points}


@settings(max_examples=40)
@given(texts, texts)
def test_operations_are_those_of_sets(left: str, right: str) -> None:
    one, two = from_text(left), from_text(right)
    assert chars(one | two) == set(left) | set(right)
    assert chars(one & two) == set(left) & set(right)
    assert chars(one - two) == set(left) - set(right)
    assert chars(~one) == set(LETTERS) - set(left)
    assert ~~one == one


@settings(max_examples=40)
@given(texts)
def test_pattern_of_a_set_matches_only_the_set(text: str) -> None:
    points = from_text(text)
    compiled = re.compile(points.to_pattern())
    assert {char for char in LETTERS if compiled.fullmatch(char)} == set(text)


def test_empty_and_full_set_have_a_pattern() -> None:
    assert re.fullmatch(ALL_CODE_POINTS.to_pattern(), "\n")
    assert not re.fullmatch(NO_CODE_POINTS.to_pattern(), "a")


def test_adjacent_ranges_become_one() -> None:
    assert from_ranges([(5, 9), (1, 4), (20, 30), (25, 26)]).ranges == ((1, 9), (20, 30))


def test_only_ascii_letters_have_another_case() -> None:
    assert from_text("aZé1").with_both_cases() == from_text("aAzZé1")


def test_general_categories_are_those_of_unicode() -> None:
    upper = named_class("Lu", ignore_case=False)
    letters = named_class("L", ignore_case=False)
    assert upper is not None
    assert letters is not None
    assert ord("É") in upper
    assert ord("é") not in upper
    assert ord("é") in letters
    assert named_class("IsGreek", ignore_case=False) is None
