"""Sizes, durations, rates and counts as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.cli import number_format


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999.4, "999 B"),
        (999.6, "1.0 kB"),
        (1_234, "1.2 kB"),
        (999_960, "1.0 MB"),
        (50_000_000, "50.0 MB"),
        (10**18, "1000.0 PB"),
    ],
)
def test_size_has_a_decimal_unit(number: float, text: str) -> None:
    assert number_format.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (60, "1m 00s"),
        (192.4, "3m 12s"),
        (7500, "2h 05m"),
        (273_600, "3d 04h"),
    ],
)
def test_duration_has_its_largest_units(seconds: float, text: str) -> None:
    assert number_format.duration(seconds) == text


def test_rate_and_count_have_a_unit() -> None:
    assert number_format.per_second(480_000) == "480.0k/s"
    assert number_format.size_per_second(1_500_000) == "1.5 MB/s"
    assert number_format.count_with_noun(1, "topic") == "1 topic"
    assert number_format.count_with_noun(1_234, "record") == "1,234 records"


def test_an_unknown_number_is_a_question_mark() -> None:
    assert number_format.count(None) == "?"
    assert number_format.count_with_noun(None, "record") == "? records"


@given(st.floats(min_value=0, max_value=1e15))
def test_rate_fits_into_its_column(number: float) -> None:
    assert len(number_format.per_second(number)) <= len("1000000.0G/s")
