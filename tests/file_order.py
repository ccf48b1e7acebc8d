"""Starts the longest test files first, and records how long each file takes.

With several workers a long file that starts last keeps one of them busy while the others wait. The
durations come from `tests/durations.json`; `--write-durations` writes that file. Inside a file
the order stays random, but for tests marked `runs_last`. A file without a duration starts first.

One worker runs all files that share an expensive cluster, so that only one is started. Such files
start as early as one file that takes as long as all of them. A worker prefers files of the
directory it has run before, because the files of a directory share clusters.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

DURATIONS = Path(__file__).parent / "durations.json"
UNKNOWN_S = float("inf")
RUNS_LAST = "runs_last"
"""The marker of a test that ends what the other tests of its file share."""
FILES_OF_CLUSTERS: Mapping[str, Sequence[str]] = {
    "three-brokers": (
        "tests/brokers/copy/test_exactly_once_brokers.py",
        "tests/brokers/copy/test_faults_leaders.py",
        "tests/brokers/copy/test_unreachable_brokers.py",
        "tests/brokers/test_kafka_based_log_outages.py",
        "tests/brokers/test_wire_leaders.py",
    ),
    "authorizer": (
        "tests/brokers/test_check_command.py",
        "tests/brokers/test_connectors_source.py",
        "tests/brokers/test_topic_acls.py",
        "tests/brokers/test_worker_group.py",
    ),
    "copy-clusters": (
        "tests/spark/test_copy_on_spark.py",
        "tests/spark/test_standalone_cluster.py",
    ),
    "program-clusters": (
        "tests/spark/test_dedicated_mode.py",
        "tests/spark/test_java_takeover.py",
        "tests/spark/test_public_data_sources.py",
        "tests/spark/test_worker.py",
    ),
}
"""The files that share clusters, beside those with one broker of the broker tier."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the durations."""
    parser.addoption("--write-durations", action="store_true", help=f"write {DURATIONS.name}")


def pytest_configure(config: pytest.Config) -> None:
    """Record durations if the option is there. Only the controller of the workers records."""
    if config.getoption("--write-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(DurationRecorder(DURATIONS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """With `--dist loadfile`, give the files of a cluster to one worker."""
    if config.getoption("dist") != "loadfile":
        return None
    return ClusterScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the files of the broker and Spark tiers, the longest first."""
    if any(item.get_closest_marker(tier) for item in items for tier in ("brokers", "spark")):
        durations = json.loads(DURATIONS.read_text("utf-8")) if DURATIONS.exists() else {}
        items[:] = longest_first(items, durations)


def longest_first(items: list[pytest.Item], durations: Mapping[str, float]) -> list[pytest.Item]:
    """Return the items sorted by the duration of their scope, then of their file.

    A scope takes as long as all its files among the items. The order inside a file stays, but items
    marked RUNS_LAST come last.
    """
    seconds = {
        file: durations.get(file, UNKNOWN_S) for file in {file_of(item.nodeid) for item in items}
    }
    sums: defaultdict[str, float] = defaultdict(float)
    for file, duration in seconds.items():
        sums[scope_of(file)] += duration

    def rank(item: pytest.Item) -> tuple[float, str, float, str, bool]:
        file = file_of(item.nodeid)
        scope = scope_of(file)
        runs_last = item.get_closest_marker(RUNS_LAST) is not None
        return (-sums[scope], scope, -seconds[file], file, runs_last)

    return sorted(items, key=rank)


def file_of(nodeid: str) -> str:
    """Return the file part of a node id."""
    return nodeid.partition("::")[0]


def scope_of(nodeid: str) -> str:
    """Return the name of the cluster that the file of a test shares with others, or the file."""
    file = file_of(nodeid)
    return next((name for name, files in FILES_OF_CLUSTERS.items() if file in files), file)


def directory_of(scope: str) -> str:
    """Return the directory whose clusters the tests of a scope share."""
    files = FILES_OF_CLUSTERS.get(scope, (scope,))
    return files[0].rpartition("/")[0]


def choose_scope(waiting: Sequence[str], own: Sequence[str], others: Sequence[str]) -> str:
    """Return the waiting scope that a worker runs next.

    `own` are the directories that the worker has run, `others` those of each other worker. A
    worker without a directory takes the one that the fewest workers have.
    """
    wanted = [scope for scope in waiting if directory_of(scope) in own]
    if not own:
        used = Counter(others)
        wanted = sorted(waiting, key=lambda scope: used[directory_of(scope)])
    return (wanted or waiting)[0]


class ClusterScheduling(LoadFileScheduling):
    """Gives all tests of one scope to the same worker."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker another scope when it has one test left, not two as xdist does.

        A worker needs to know the test after the one that it runs. More would be kept from idle
        workers.
        """
        if not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        directories = {
            worker: sorted({directory_of(scope) for scope in scopes})
            for worker, scopes in self.assigned_work.items()
        }
        own = directories.pop(node, [])
        scope = choose_scope(list(self.workqueue), own, [*chain(*directories.values())])
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)


class DurationRecorder:
    """Sums up the duration of each file and writes the sums when the session ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of one phase of one test."""
        self._seconds[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the sums. Files that this session did not run keep their entries."""
        known = json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}
        known |= {file: round(seconds, 1) for file, seconds in self._seconds.items()}
        text = json.dumps(dict(sorted(known.items())), indent=1)
        self._path.write_text(text + "\n", "utf-8")
