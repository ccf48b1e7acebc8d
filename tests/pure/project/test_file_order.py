"""The order of test files, and the durations behind it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.file_order import (
    DURATIONS,
    FILES_OF_CLUSTERS,
    DurationRecorder,
    choose_scope,
    longest_first,
    scope_of,
)

ROOT = Path(__file__).parents[3]


@dataclass
class Named:
    nodeid: str

    def get_closest_marker(self, name: str) -> str | None:
        """A test whose name begins with that of a marker has it."""
        return name if self.nodeid.partition("::")[2].startswith(name) else None


@dataclass
class Timed(Named):
    duration: float


def test_the_longest_file_comes_first_and_an_unknown_one_before_it() -> None:
    names = ["b.py::1", "a.py::2", "b.py::0", "new.py::1", "a.py::1"]
    items = cast(list[pytest.Item], [Named(name) for name in names])
    ordered = longest_first(items, {"a.py": 9.0, "b.py": 3.0})
    assert [item.nodeid for item in ordered] == [
        *("new.py::1", "a.py::2", "a.py::1", "b.py::1", "b.py::0"),
    ]


def test_a_test_that_runs_last_comes_after_the_others_of_its_file() -> None:
    names = ["a.py::runs_last_1", "b.py::runs_last_2", "a.py::2", "b.py::3", "a.py::1"]
    items = cast(list[pytest.Item], [Named(name) for name in names])
    ordered = longest_first(items, {"a.py": 9.0, "b.py": 3.0})
    assert [item.nodeid for item in ordered] == [
        *("a.py::2", "a.py::1", "a.py::runs_last_1", "b.py::3", "b.py::runs_last_2"),
    ]


def test_durations_are_summed_by_file_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "durations.json"
    path.write_text('{"old.py": 7.0, "a.py": 1.0}')
    recorder = DurationRecorder(path)
    for nodeid, seconds in (("a.py::1", 1.25), ("a.py::2", 2.0), ("b.py::1", 0.5)):
        recorder.pytest_runtest_logreport(cast(pytest.TestReport, Timed(nodeid, seconds)))
    recorder.pytest_sessionfinish()
    assert json.loads(path.read_text()) == {"a.py": 3.2, "b.py": 0.5, "old.py": 7.0}


def test_every_recorded_file_exists() -> None:
    recorded = json.loads(DURATIONS.read_text("utf-8"))
    assert [name for name in recorded if not (ROOT / name).is_file()] == []


def test_one_worker_runs_all_files_of_a_cluster() -> None:
    for name, files in FILES_OF_CLUSTERS.items():
        assert {scope_of(f"{file}::test") for file in files} == {name}
        assert [file for file in files if not (ROOT / file).is_file()] == []
    assert scope_of("tests/brokers/test_admin.py::test") == "tests/brokers/test_admin.py"


def test_a_worker_prefers_the_clusters_it_has() -> None:
    waiting = ["a/x.py", "b/y.py", "a/z.py"]
    assert choose_scope(waiting, own=["b"], others=["a", "b"]) == "b/y.py"
    assert choose_scope(waiting, own=["a"], others=["a"]) == "a/x.py"
    assert choose_scope(waiting, own=["c"], others=[]) == "a/x.py"


def test_a_worker_without_clusters_takes_those_of_the_fewest_workers() -> None:
    waiting = ["a/x.py", "b/y.py", "a/z.py"]
    assert choose_scope(waiting, own=[], others=[]) == "a/x.py"
    assert choose_scope(waiting, own=[], others=["a"]) == "b/y.py"
    assert choose_scope(waiting, own=[], others=["a", "b"]) == "a/x.py"
