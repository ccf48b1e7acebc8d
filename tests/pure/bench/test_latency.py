"""Latencies become percentiles."""

from __future__ import annotations

import array
from pathlib import Path

import pytest

from bench.latency import max_latency_by_second, summary
from bench.latency_consumer import Arrival, read_arrivals
from sparkmirror.errors import LabError

MS = 1_000_000
STARTED = 5_000 * MS


def arrivals() -> list[Arrival]:
    """Return 1000 arrivals, one per millisecond. The last two have long latencies."""
    latencies = [1 * MS] * 998 + [40 * MS, 50 * MS]
    return [
        Arrival(STARTED + n * MS, STARTED + n * MS + latency) for n, latency in enumerate(latencies)
    ]


def test_percentiles_include_the_slowest_records() -> None:
    found = summary(arrivals(), sent=1003)
    assert (found["p50_ms"], found["p99_ms"], found["p999_ms"], found["max_ms"]) == (1, 1, 50, 50)
    assert (found["records"], found["missing"]) == (1000, 3)


def test_no_arrival_is_an_error() -> None:
    with pytest.raises(LabError, match="no record"):
        summary([], sent=1000)


def test_each_second_has_its_longest_latency() -> None:
    late = Arrival(STARTED + 1500 * MS, STARTED + 1507 * MS)
    assert max_latency_by_second([*arrivals(), late], STARTED) == ((0, 50), (1, 7))


def test_arrivals_are_read_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "arrivals"
    file.write_bytes(array.array("Q", [1, 2, 3, 4]).tobytes())
    assert list(read_arrivals(file)) == [Arrival(1, 2), Arrival(3, 4)]
