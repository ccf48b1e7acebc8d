"""Layers keep the value that wins and the values that it overrides, in order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.files.provenance import (
    CandidateValue,
    ConfigOrigin,
    LayeredConfig,
    PrecedenceRule,
)


def candidate(value: str) -> CandidateValue:
    return CandidateValue(
        value=value, origin=ConfigOrigin(rule=PrecedenceRule.TOP_LEVEL, key=value)
    )


def test_an_override_wins_over_earlier_values_and_a_fallback_over_none() -> None:
    layers = LayeredConfig()
    layers.add_fallback("k", candidate("b"))
    layers.add_override("k", candidate("a"))
    layers.add_fallback("k", candidate("c"))
    assert layers.props == {"k": "a"}
    assert [lost.value for lost in layers["k"].overridden] == ["b", "c"]


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=2)), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_all_candidates_are_kept_in_the_order_of_precedence(
    offers: list[tuple[bool, str]],
) -> None:
    layers = LayeredConfig()
    expected: list[str] = []
    for wins, value in offers:
        if wins:
            layers.add_override("k", candidate(value))
            expected.insert(0, value)
        else:
            layers.add_fallback("k", candidate(value))
            expected.append(value)
    assert [offered.value for offered in layers["k"].candidates] == expected
