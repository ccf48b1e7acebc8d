"""Growth compares the last part of an hour with the first."""

from __future__ import annotations

import pytest

from bench.hour import Sample, growth


def samples(cpu_of_second_half: float, memory_step: float) -> list[Sample]:
    """Return a sample per 30 s of an hour: 10 % of a core at first, from 100 MB on."""
    found, cpu_s = [], 5.0
    for number in range(121):
        found.append(Sample(number * 30.0, cpu_s, 100e6 + number * memory_step))
        cpu_s += 30 * (0.1 if number < 60 else cpu_of_second_half)
    return found


def test_a_flat_hour_has_not_grown() -> None:
    found = growth(samples(0.1, 0.0))
    assert found["cpu_growth"] == pytest.approx(1)
    assert found["memory_growth"] == 1
    assert found["cpu_share_first"] == pytest.approx(0.1)


def test_growth_is_the_ratio_of_the_last_ten_minutes_to_the_first() -> None:
    found = growth(samples(0.15, 1e6))
    assert found["cpu_growth"] == pytest.approx(1.5)
    assert (found["memory_bytes_first"], found["memory_bytes_last"]) == (109.5e6, 210.5e6)
    assert found["memory_growth"] == pytest.approx(210.5 / 109.5)
