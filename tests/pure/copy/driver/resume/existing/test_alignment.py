"""Alignment: the lengths of equal rows, which distinguish the candidates."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.driver.resume.existing.alignment import common_prefix_lengths

TOKENS = st.lists(st.integers(0, 2), max_size=20)


@given(TOKENS, TOKENS)
def test_common_prefix_lengths_are_those_of_a_plain_comparison(
    prefix: list[int], tokens: list[int]
) -> None:
    def compare(place: int) -> int:
        rest = tokens[place:]
        equal = [a == b for a, b in zip(prefix, rest, strict=False)]
        return equal.index(False) if False in equal else len(equal)

    assert common_prefix_lengths(prefix, tokens) == [compare(n) for n in range(len(tokens))]
