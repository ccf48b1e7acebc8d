"""Starts the longest test files first, and records how long each file takes.

With several workers a long file that starts last keeps one of them busy while the others wait. The
durations come from `tests/durations.json`; `--write-durations` writes that file. Inside a file
the order stays random, but for tests marked `runs_last`. A file without a duration starts first.

One worker runs all files that share an expensive cluster, so that only one is started. Such files
start as early as one file that takes as long as all of them. The files of a directory of the broker
tier share clusters, too: as long as there are other files, one worker runs them all. Shared
clusters end with the last test that has a use for them: idle brokers would slow the others down.
Those of a scope end with it, while the clusters of its directory go on.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

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
        "tests/brokers/test_default_replicas.py",
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
        "tests/spark/test_prometheus.py",
        "tests/spark/test_public_data_sources.py",
        "tests/spark/test_queries.py",
        "tests/spark/test_worker.py",
    ),
    "one-broker-tutorials": (
        "tests/spark/tutorials/test_docker_compose_tutorial.py",
        "tests/spark/tutorials/test_msk_tutorial.py",
    ),
    "secured-tutorials": (
        "tests/spark/tutorials/test_event_hubs_tutorial.py",
        "tests/spark/tutorials/test_event_streams_tutorial.py",
    ),
}
"""The files that share clusters, beside those of SHARED_DIRECTORIES."""
FIXTURES_OF_SCOPES: Mapping[str, str] = {
    "three-brokers": "started_three_broker_cluster",
    "authorizer": "cluster_with_authorizer",
}
"""The session fixtures that only the tests of one scope of a directory use."""
SHARED_DIRECTORIES = ("tests/brokers", "tests/brokers/copy")
"""The directories whose files share clusters with one broker."""
TIERS = ("brokers", "spark")


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
    if any(item.get_closest_marker(tier) for item in items for tier in TIERS):
        durations = json.loads(DURATIONS.read_text("utf-8")) if DURATIONS.exists() else {}
        items[:] = longest_first(items, durations)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the shared clusters if the next test has no use for them."""
    if nextitem is None or not any(item.get_closest_marker(tier) for tier in TIERS):
        return
    scope, next_scope = scope_of(item.nodeid), scope_of(nextitem.nodeid)
    if clusters_of(scope) != clusters_of(next_scope):
        item.session._setupstate.teardown_exact(None)
    elif scope != next_scope and scope in FIXTURES_OF_SCOPES:
        _end_fixture(item, FIXTURES_OF_SCOPES[scope])


def _end_fixture(item: pytest.Item, name: str) -> None:
    """End a fixture before its session ends. A later test that uses it would start it again."""
    request: Any = vars(item)["_request"]
    for fixture in item.session._fixturemanager.getfixturedefs(name, item) or ():
        fixture.finish(request)


def longest_first(items: list[pytest.Item], durations: Mapping[str, float]) -> list[pytest.Item]:
    """Return the items sorted by the duration of what shares clusters, of the scope, of the file.

    A scope takes as long as all its files among the items. The order inside a file stays, but items
    marked RUNS_LAST come last.
    """
    seconds = {
        file: durations.get(file, UNKNOWN_S) for file in {file_of(item.nodeid) for item in items}
    }
    sums: defaultdict[str, float] = defaultdict(float)
    for file, duration in seconds.items():
        scope = scope_of(file)
        for name in {scope, clusters_of(scope)}:
            sums[name] += duration

    def rank(item: pytest.Item) -> tuple[float | str | bool, ...]:
        file = file_of(item.nodeid)
        scope = scope_of(file)
        clusters = clusters_of(scope)
        runs_last = item.get_closest_marker(RUNS_LAST) is not None
        names = (-sums[clusters], clusters, -sums[scope], scope, -seconds[file], file)
        return (*names, runs_last)

    return sorted(items, key=rank)


def file_of(nodeid: str) -> str:
    """Return the file part of a node id."""
    return nodeid.partition("::")[0]


def scope_of(nodeid: str) -> str:
    """Return the name of the cluster that the file of a test shares with others, or the file."""
    file = file_of(nodeid)
    return next((name for name, files in FILES_OF_CLUSTERS.items() if file in files), file)


def clusters_of(scope: str) -> str:
    """Return the directory if its scopes share clusters, else the scope."""
    files = FILES_OF_CLUSTERS.get(scope, (scope,))
    directory = files[0].rpartition("/")[0]
    return directory if directory in SHARED_DIRECTORIES else scope


def choose_scope(waiting: Sequence[str], own: Sequence[str], others: Sequence[str]) -> str:
    """Return the waiting scope that a worker runs next.

    `own` are the clusters that the worker has started, `others` those of each other worker. The
    first scope that its own clusters serve is next, or else the first one whose clusters no other
    worker has, or else the one whose clusters the fewest workers have.
    """
    used = Counter(others)
    wanted = [scope for scope in waiting if clusters_of(scope) in own]
    return wanted[0] if wanted else min(waiting, key=lambda scope: used[clusters_of(scope)])


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
        started = {
            worker: sorted({clusters_of(scope) for scope in scopes})
            for worker, scopes in self.assigned_work.items()
        }
        own = started.pop(node, [])
        scope = choose_scope(list(self.workqueue), own, [*chain(*started.values())])
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
