"""The order of test files, and the durations behind it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from xdist.workermanage import WorkerController

from tests.file_order import (
    DURATIONS,
    FILES_OF_CLUSTERS,
    FIXTURES_OF_SCOPES,
    SHARED_DIRECTORIES,
    ClusterScheduling,
    DurationRecorder,
    choose_scope,
    longest_first,
    scope_of,
)
from tests.support.nested_pytest import run_nested_pytest

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


class SchedulingConfig:
    """What xdist's scheduler reads of the options: two workers, the files in their order."""

    option = SimpleNamespace(loadscopereorder=False)

    def getvalue(self, name: str) -> list[str]:
        assert name == "tx"
        return ["popen", "popen"]


@dataclass(eq=False)
class RecordingWorker:
    """Keeps the numbers of the tests that it is to run."""

    indices: list[int] = field(default_factory=list)
    shutting_down: bool = False
    gateway = SimpleNamespace(id="worker")

    def send_runtest_some(self, indices: list[int]) -> None:
        self.indices += indices

    def shutdown(self) -> None:
        self.shutting_down = True


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


def test_files_of_a_cluster_start_as_early_as_one_file_that_takes_as_long_as_all_of_them() -> None:
    first, second, *_ = FILES_OF_CLUSTERS["authorizer"]
    names = [f"{first}::1", "long.py::1", f"{second}::1", "short.py::1"]
    items = cast(list[pytest.Item], [Named(name) for name in names])
    seconds = {first: 4.0, second: 6.0, "long.py": 9.0, "short.py": 5.0}
    ordered = [item.nodeid for item in longest_first(items, seconds)]
    assert ordered == [f"{second}::1", f"{first}::1", "long.py::1", "short.py::1"]
    ordered = [item.nodeid for item in longest_first(items[:2], seconds)]
    assert ordered == ["long.py::1", f"{first}::1"], "the second file is not among the items"


def test_durations_are_summed_by_file_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "durations.json"
    path.write_text('{"old.py": 7.0, "a.py": 1.0}')
    recorder = DurationRecorder(path)
    for nodeid, seconds in (("a.py::1", 1.25), ("a.py::2", 2.0), ("b.py::1", 0.5)):
        recorder.pytest_runtest_logreport(cast(pytest.TestReport, Timed(nodeid, seconds)))
    recorder.pytest_sessionfinish()
    assert json.loads(path.read_text()) == {"a.py": 3.2, "b.py": 0.5, "old.py": 7.0}


def test_a_worker_gets_another_file_when_it_has_one_test_left() -> None:
    scheduling = ClusterScheduling(cast(pytest.Config, SchedulingConfig()))
    collection = ["a.py::1", "a.py::2", "a.py::3", "b.py::1", "c.py::1", "d.py::1"]
    workers = [RecordingWorker(), RecordingWorker()]
    nodes = [cast(WorkerController, worker) for worker in workers]
    for node in nodes:
        scheduling.add_node(node)
        scheduling.add_node_collection(node, collection)
    scheduling.schedule()
    assert [worker.indices for worker in workers] == [[0, 1, 2], [3, 4]]
    scheduling.mark_test_complete(nodes[0], 0)
    assert workers[0].indices == [0, 1, 2], "it knows the test after the one that it runs"
    scheduling.mark_test_complete(nodes[0], 1)
    assert workers[0].indices == [0, 1, 2, 5]
    scheduling.mark_test_complete(nodes[1], 3)
    assert [worker.shutting_down for worker in workers] == [False, True], "no file is left"


def test_every_recorded_file_exists() -> None:
    recorded = json.loads(DURATIONS.read_text("utf-8"))
    assert [name for name in recorded if not (ROOT / name).is_file()] == []


def test_one_worker_runs_all_files_of_a_cluster() -> None:
    for name, files in FILES_OF_CLUSTERS.items():
        assert {scope_of(f"{file}::test") for file in files} == {name}
        assert [file for file in files if not (ROOT / file).is_file()] == []
    assert scope_of("tests/brokers/test_admin.py::test") == "tests/brokers/test_admin.py"


BROKERS, COPY = SHARED_DIRECTORIES
WAITING = [f"{COPY}/x.py", f"{BROKERS}/y.py", f"{COPY}/z.py", "tests/spark/s.py"]


def test_a_worker_prefers_the_clusters_it_has() -> None:
    assert choose_scope(WAITING, own=[BROKERS], others=[COPY, BROKERS]) == f"{BROKERS}/y.py"
    assert choose_scope(WAITING, own=[COPY], others=[COPY]) == f"{COPY}/x.py"
    assert choose_scope(WAITING, own=["tests/spark/r.py"], others=[]) == f"{COPY}/x.py"


def test_a_worker_without_clusters_takes_those_of_the_fewest_workers() -> None:
    assert choose_scope(WAITING, own=[], others=[]) == f"{COPY}/x.py"
    assert choose_scope(WAITING, own=[], others=[COPY]) == f"{BROKERS}/y.py"
    assert choose_scope(WAITING, own=[], others=[COPY, BROKERS]) == "tests/spark/s.py"
    assert choose_scope(WAITING[:3], own=[], others=[COPY, BROKERS]) == f"{COPY}/x.py"
    assert choose_scope(WAITING[:3], own=[], others=[COPY, BROKERS, COPY]) == f"{BROKERS}/y.py"


def test_a_directory_whose_files_share_clusters_starts_as_early_as_one_file_of_its_length() -> None:
    first, second = f"{BROKERS}/a.py", f"{BROKERS}/b.py"
    names = [f"{first}::1", "tests/spark/s.py::1", f"{second}::1", "tests/spark/t.py::1"]
    items = cast(list[pytest.Item], [Named(name) for name in names])
    seconds = {first: 4.0, second: 6.0, "tests/spark/s.py": 9.0, "tests/spark/t.py": 11.0}
    assert [item.nodeid for item in longest_first(items, seconds)] == [
        *("tests/spark/t.py::1", f"{second}::1", f"{first}::1", "tests/spark/s.py::1"),
    ]


NESTED_CONFTEST = """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(item.path.parent.name)
@pytest.fixture(scope="session")
def cluster():
    print("start")
    yield
    print("end")
"""


def test_clusters_end_before_a_test_that_has_no_use_for_them(tmp_path: Path) -> None:
    """The files of one directory of the broker tier share them, other files do not."""
    names = ("brokers/test_a", "brokers/test_b", "spark/test_c", "spark/test_d")
    for name in names:
        file = tmp_path / "tests" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def test(cluster): print('{file.name}')")
    (tmp_path / "conftest.py").write_text(NESTED_CONFTEST)
    markers = "markers =\n  brokers\n  spark"
    done = run_nested_pytest(tmp_path, "", markers, "-s", "-p", "tests.file_order")
    assert done.returncode == 0, done.stdout
    words = [word.strip(".") for word in done.stdout.partition("4 passed")[0].split()]
    assert [word for word in words if word] == [
        *("start", "test_a.py", "test_b.py", "end"),
        *("start", "test_c.py", "end", "start", "test_d.py", "end"),
    ]


SCOPED_CONFTEST = """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker("brokers")
@pytest.fixture(scope="session")
def pair():
    print("start-pair")
    yield
    print("end-pair")
@pytest.fixture(scope="session")
def started_three_broker_cluster():
    print("start-three")
    yield
    print("end-three")
"""


def test_clusters_of_a_scope_end_with_it_while_those_of_its_directory_go_on(
    tmp_path: Path,
) -> None:
    first, second, *_ = FILES_OF_CLUSTERS["three-brokers"]
    files = {first: "started_three_broker_cluster, pair", second: "started_three_broker_cluster"}
    files["tests/brokers/copy/test_replan.py"] = "pair"
    for name, fixtures in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def test({fixtures}): print('{file.name}')")
    (tmp_path / "conftest.py").write_text(SCOPED_CONFTEST)
    done = run_nested_pytest(tmp_path, "", "markers =\n  brokers", "-s", "-p", "tests.file_order")
    assert done.returncode == 0, done.stdout
    words = [word.strip(".") for word in done.stdout.partition("3 passed")[0].split()]
    assert words[-3:] == ["end-three", "test_replan.py", "end-pair"], done.stdout
    assert words.count("start-three") == words.count("start-pair") == 1


def test_the_fixture_of_each_scope_is_one_of_the_broker_tier() -> None:
    conftest = (ROOT / "tests" / "brokers" / "conftest.py").read_text("utf-8")
    for scope, fixture in FIXTURES_OF_SCOPES.items():
        assert scope in FILES_OF_CLUSTERS
        assert f"def {fixture}(" in conftest
