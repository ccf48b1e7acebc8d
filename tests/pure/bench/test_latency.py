"""How ways become percentiles."""

from __future__ import annotations

import array
from pathlib import Path

import pytest

from bench.latency import max_latency_by_second, summary
from bench.latency_consumer import Arrival, read_arrivals
from sparkmirror.errors import LabError

MS = 1_000_000
BEGUN = 5_000 * MS


def arrivals() -> list[Arrival]:
    """A thousand records, one a millisecond, of which the last two take long."""
    ways = [1 * MS] * 998 + [40 * MS, 50 * MS]
    return [Arrival(BEGUN + n * MS, BEGUN + n * MS + way) for n, way in enumerate(ways)]


def test_the_tail_is_in_the_percentiles() -> None:
    found = summary(arrivals(), sent=1003)
    assert (found["p50_ms"], found["p99_ms"], found["p999_ms"], found["max_ms"]) == (1, 1, 50, 50)
    assert (found["records"], found["missing"]) == (1000, 3)


def test_nothing_that_arrived_is_a_failure() -> None:
    with pytest.raises(LabError, match="no record"):
        summary([], sent=1000)


def test_each_second_has_its_longest_way() -> None:
    late = Arrival(BEGUN + 1500 * MS, BEGUN + 1507 * MS)
    assert max_latency_by_second([*arrivals(), late], BEGUN) == ((0, 50), (1, 7))


def test_arrivals_are_read_as_they_were_noted(tmp_path: Path) -> None:
    file = tmp_path / "arrivals"
    file.write_bytes(array.array("Q", [1, 2, 3, 4]).tobytes())
    assert list(read_arrivals(file)) == [Arrival(1, 2), Arrival(3, 4)]
