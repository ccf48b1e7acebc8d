"""Many source connectors in one worker share one Spark application, and each lives on its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_worker,
)
from tests.support.cli.property_files import worker_properties
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

pytestmark = pytest.mark.soak

RECORDS = 100
CONNECTORS = 6
UNREACHABLE = "127.0.0.1:1"
FENCES = 3
"""Some for a busy computer."""


class ManyConnectors:
    """A worker and its source connectors: each copies one topic with its name."""

    def __init__(self, program: MirrorProcess, clusters: MirroredClusters) -> None:
        self.program = program
        self.clusters = clusters
        self._prefix = f"many{secrets.token_hex(3)}"

    def name(self, number: int) -> str:
        return f"{self._prefix}-{number}"

    def create(self, number: int, **more: str) -> None:
        """Create a topic with records, and a connector that copies it."""
        name = self.name(number)
        self.clusters.create_topic(name)
        self.clusters.write_records(name, range(RECORDS))
        self.program.call_json("PUT", f"{connector_path(name)}/config", self._config(name, more))

    def _config(self, name: str, more: dict[str, str]) -> dict[str, str]:
        return {
            "connector.class": "MirrorSourceConnector",
            "source.cluster.alias": "east",
            "target.cluster.alias": "west",
            "source.cluster.bootstrap.servers": self.clusters.source.bootstrap,
            "target.cluster.bootstrap.servers": self.clusters.target.bootstrap,
            "topics": name,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "heartbeats.replication.enabled": "false",
            "tasks.max": "1",
            **{key.replace("__", "."): value for key, value in more.items()},
        }

    def wait_until_copied(self, number: int) -> None:
        name = self.name(number)
        self.clusters.wait_until_copied(name, f"east.{name}", timeout_s=SPARK_TIMEOUT_S)

    def write_more(self, number: int) -> None:
        self.clusters.write_records(self.name(number), range(RECORDS, 2 * RECORDS))

    def wait_for_states(self, number: int, *states: str) -> None:
        self.program.wait_for_states(self.name(number), *states)

    def request(self, method: str, number: int, path: str = "") -> None:
        self.program.call_json(method, f"{connector_path(self.name(number))}{path}")

    def assert_copied(self, number: int) -> None:
        name = self.name(number)
        self.clusters.assert_copied(name, f"east.{name}", fences=FENCES)


@pytest.fixture(scope="module")
def many(
    mirrored_clusters: MirroredClusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ManyConnectors]:
    """A worker with some connectors that copy. A test may use connector 3 up."""
    properties = worker_properties(mirrored_clusters.target, f"group-{secrets.token_hex(3)}")
    with running_worker(properties, tmp_path_factory.mktemp("worker")) as program:
        started = ManyConnectors(program, mirrored_clusters)
        wait_until(lambda: program.request("GET", "/health").status == 200, "the worker", 400)
        for number in range(CONNECTORS):
            started.create(number)
        for number in range(CONNECTORS):
            started.wait_until_copied(number)
        yield started


def test_a_further_connector_needs_no_further_process(many: ManyConnectors) -> None:
    number = CONNECTORS + 2
    before = {process.pid for process in many.program.drivers()}
    many.create(number)
    many.wait_until_copied(number)
    many.wait_for_states(number, "RUNNING", "RUNNING")
    assert {process.pid for process in many.program.drivers()} == before
    assert len(before) == 1


def test_connectors_pause_restart_and_end_one_by_one(many: ManyConnectors) -> None:
    many.request("PUT", 0, "/pause")
    many.wait_for_states(0, "PAUSED", "PAUSED")
    many.request("POST", 1, "/restart?includeTasks=true&onlyFailed=false")
    for number in (0, 1, 2):
        many.write_more(number)
    for number in (1, 2):
        many.wait_until_copied(number)
    assert many.clusters.target_record_counts(many.name(0), f"east.{many.name(0)}") == [RECORDS]
    many.request("DELETE", 3)
    many.request("PUT", 0, "/resume")
    many.wait_until_copied(0)
    for number in (0, 1, 2):
        many.assert_copied(number)


def test_a_connector_without_its_source_concerns_no_other(many: ManyConnectors) -> None:
    [driver] = many.program.drivers()
    number = CONNECTORS
    many.create(number, source__cluster__bootstrap__servers=UNREACHABLE)
    path = f"{connector_path(many.name(number))}/status"
    wait_until(
        lambda: "refused" in str(many.program.request("GET", path).json),
        "the trace to name the cause",
        SPARK_TIMEOUT_S,
    )
    many.write_more(4)
    many.wait_until_copied(4)
    many.wait_for_states(4, "RUNNING", "RUNNING")
    many.request("DELETE", number)
    assert [one.pid for one in many.program.drivers()] == [driver.pid]


def test_a_killed_driver_is_a_takeover_for_all_connectors(many: ManyConnectors) -> None:
    [driver] = many.program.drivers()
    driver.kill()
    many.write_more(5)
    many.wait_until_copied(5)
    for number in (0, 1, 2, 4, 5):
        many.wait_for_states(number, "RUNNING", "RUNNING")
        many.assert_copied(number)
    [other] = many.program.drivers()
    assert other.pid != driver.pid


def test_a_connector_with_spark_settings_has_an_application_of_its_own(
    many: ManyConnectors,
) -> None:
    number = CONNECTORS + 1
    many.create(number, spark__driver__memory="600m")
    many.wait_until_copied(number)
    assert len(many.program.drivers()) == 2
    logs: list[Path] = list(many.program.log.parent.rglob("spark-application*.log"))
    assert sorted(name.name.partition(many.name(number))[1] for name in logs) == [
        "",
        many.name(number),
    ]
    many.request("DELETE", number)
    wait_until(lambda: len(many.program.drivers()) == 1, "its driver to end", SPARK_TIMEOUT_S)
