"""Layers keep the winner, and everything it won against in order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.layers import Candidate, Layers, Origin, Rule


def candidate(value: str) -> Candidate:
    return Candidate(value=value, origin=Origin(rule=Rule.TOP_LEVEL, key=value))


def test_put_wins_and_fill_gives_way() -> None:
    layers = Layers()
    layers.fill("k", candidate("b"))
    layers.put("k", candidate("a"))
    layers.fill("k", candidate("c"))
    assert layers.plain == {"k": "a"}
    assert [lost.value for lost in layers["k"].overrode] == ["b", "c"]


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=2)), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_nothing_offered_is_forgotten_and_the_order_is_that_of_strength(
    offers: list[tuple[bool, str]],
) -> None:
    layers = Layers()
    expected: list[str] = []
    for wins, value in offers:
        if wins:
            layers.put("k", candidate(value))
            expected.insert(0, value)
        else:
            layers.fill("k", candidate(value))
            expected.append(value)
    assert [offered.value for offered in layers["k"].candidates] == expected
