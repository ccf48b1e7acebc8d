"""A Connect worker as one process, with Spark behind it: what operators do to it, and its end."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_worker,
)
from tests.support.cli.property_files import worker_properties
from tests.support.processes import session_processes
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.spark.observed_driver import JVM
from tests.support.waiting import wait_until

RECORDS = 300
AT_ONCE = 130
"""The exit code of who was asked twice."""
FENCES = 3
"""One for a driver that was killed, and some for a busy computer."""


@pytest.fixture(scope="module")
def program(
    sides: MirroredClusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MirrorProcess]:
    """A worker on the target."""
    properties = worker_properties(sides.target, f"group-{secrets.token_hex(3)}")
    with running_worker(properties, tmp_path_factory.mktemp("worker")) as started:
        yield started


@pytest.fixture
def name(program: MirrorProcess) -> Iterator[str]:
    """Of a connector, and the beginning of all its topics.

    The worker is shared: the connector, and its driver, are gone when the next test begins.
    """
    made = new_name()
    yield made
    program.request("DELETE", connector_path(made))
    wait_until(
        lambda: not program.drivers(), "the driver to end with its connector", SPARK_TIMEOUT_S
    )


def new_name() -> str:
    return f"w{secrets.token_hex(3)}"


def source_config(sides: MirroredClusters, name: str, **more: str) -> dict[str, str]:
    """A source connector that mirrors every topic whose name begins with its own."""
    return {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "east",
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": sides.source.bootstrap,
        "target.cluster.bootstrap.servers": sides.target.bootstrap,
        "topics": f"{name}.*",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def test_a_connector_obeys_while_records_flow(
    sides: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    one, two = f"{name}.one", f"{name}.two"
    sides.create_topic(one, 2)
    sides.write_records(one, range(RECORDS), 2)
    program.call_json("PUT", f"{connector_path(name)}/config", source_config(sides, name))
    sides.wait_until_copied(one, f"east.{one}", 2, SPARK_TIMEOUT_S)
    program.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
    [driver] = program.drivers()

    sides.create_topic(two)
    sides.write_records(two, range(RECORDS))
    sides.wait_until_copied(two, f"east.{two}", timeout_s=SPARK_TIMEOUT_S)
    with Admin(sides.source.access) as admin:
        assert not admin.create_partitions({two: 3})
    sides.write_records(two, range(RECORDS, 2 * RECORDS), 3)
    sides.wait_until_copied(two, f"east.{two}", 3, timeout_s=SPARK_TIMEOUT_S)

    program.call_json("PUT", f"{connector_path(name)}/pause")
    program.wait_for_states(name, "PAUSED", "PAUSED", "PAUSED")
    sides.write_records(one, range(RECORDS, 2 * RECORDS), 2)
    time.sleep(2)
    assert sides.target_record_counts(one, f"east.{one}", 2) == 2 * [RECORDS], "copied while paused"
    program.call_json("PUT", f"{connector_path(name)}/resume")
    program.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
    sides.wait_until_copied(one, f"east.{one}", 2, timeout_s=SPARK_TIMEOUT_S)

    restarted = program.call_json(
        "POST", f"{connector_path(name)}/restart?includeTasks=true&onlyFailed=false"
    )
    assert restarted["name"] == name
    program.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
    sides.write_records(one, range(2 * RECORDS, 3 * RECORDS), 2)
    sides.wait_until_copied(one, f"east.{one}", 2, timeout_s=SPARK_TIMEOUT_S)

    assert [one.pid for one in program.drivers()] == [driver.pid], "Spark was started anew"
    sides.assert_copied(one, f"east.{one}", 2, FENCES)
    sides.assert_copied(two, f"east.{two}", 3, FENCES)
    remotes = {f"east.{one}", f"east.{two}"}
    wait_until(
        lambda: set(program.get_json(f"{connector_path(name)}/topics")[name]["topics"]) == remotes,
        "its topics",
    )
    lags = {
        *((one, number, 0) for number in range(2)),
        *((two, number, 0) for number in range(3)),
    }

    def shown() -> set[tuple[str, int, int]]:
        standing = program.get_json(f"{connector_path(name)}/partitions")["partitions"]
        return {(p["topic"], p["partition"], p["lag"]) for p in standing}

    wait_until(lambda: shown() == lags, "no lag to be shown")

    program.call_json("DELETE", connector_path(name))
    wait_until(
        lambda: not session_processes(driver.pid),
        "the driver to end with its connector",
        SPARK_TIMEOUT_S,
    )
    assert program.request("GET", f"{connector_path(name)}/status").status == 404


def test_offsets_are_altered_before_it_runs_and_forgotten_when_it_stopped(
    sides: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    topic, remote = f"{name}.t", f"east.{name}.t"
    sides.create_topic(topic)
    sides.write_records(topic, range(RECORDS))
    config = source_config(sides, name)
    program.call_json(
        "POST", "/connectors", {"name": name, "config": config, "initial_state": "STOPPED"}
    )
    program.wait_for_states(name, "STOPPED")
    partition = {"cluster": "east", "partition": 0, "topic": topic}
    wanted = {"offsets": [{"partition": partition, "offset": {"offset": RECORDS - 11}}]}
    said = program.call_json("PATCH", f"{connector_path(name)}/offsets", wanted)
    assert "altered successfully" in said["message"]
    assert program.get_json(f"{connector_path(name)}/offsets") == wanted
    program.call_json("PUT", f"{connector_path(name)}/resume")
    wait_until(
        lambda: (
            sides.reverse.source_end_offsets(remote).get(0, 0) >= 10
            and sides.target_record_counts(topic, remote) == [10]
        ),
        "the last ten to be copied",
        SPARK_TIMEOUT_S,
    )
    assert program.request("DELETE", f"{connector_path(name)}/offsets").status == 400, (
        "it is not stopped"
    )
    [driver] = program.drivers()
    program.call_json("PUT", f"{connector_path(name)}/stop")
    program.wait_for_states(name, "STOPPED")
    wait_until(
        lambda: not session_processes(driver.pid),
        "the driver to end with its connector",
        SPARK_TIMEOUT_S,
    )
    latest = {"offsets": [{"partition": partition, "offset": {"offset": RECORDS - 1}}]}
    assert program.get_json(f"{connector_path(name)}/offsets") == latest
    said = program.call_json("DELETE", f"{connector_path(name)}/offsets")
    assert "reset successfully" in said["message"]
    assert program.get_json(f"{connector_path(name)}/offsets") == {"offsets": []}
    program.call_json("DELETE", connector_path(name))
    assert sides.target_record_counts(topic, remote) == [10]


def test_a_changed_config_takes_effect_and_a_killed_driver_comes_back(
    sides: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    one, two = f"{name}.one", f"{name}.two"
    for topic in (one, two):
        sides.create_topic(topic)
        sides.write_records(topic, range(RECORDS))
    config = source_config(sides, name, topics=one)
    program.call_json("PUT", f"{connector_path(name)}/config", config)
    sides.wait_until_copied(one, f"east.{one}", timeout_s=SPARK_TIMEOUT_S)
    [driver] = program.drivers()
    wider = config | {"topics": f"{one},{two}"}
    assert program.call_json("PUT", f"{connector_path(name)}/config", wider)["config"] == {
        **wider,
        "name": name,
    }
    sides.wait_until_copied(two, f"east.{two}", timeout_s=SPARK_TIMEOUT_S)

    [machine] = session_processes(driver.pid, JVM)
    machine.kill()
    sides.write_records(one, range(RECORDS, 2 * RECORDS))
    assert program.get_json(f"{connector_path(name)}/status")["connector"]["state"] == "RUNNING"
    assert program.get_json("/health")["status"] == "healthy"
    sides.wait_until_copied(one, f"east.{one}", timeout_s=SPARK_TIMEOUT_S)
    program.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
    for topic in (one, two):
        sides.assert_copied(topic, f"east.{topic}", fences=FENCES)


def test_an_unknown_target_is_named_in_the_status(
    sides: MirroredClusters, program: MirrorProcess, name: str
) -> None:
    sides.create_topic(f"{name}.t")
    nowhere = "127.0.0.1:1"
    config = source_config(sides, name) | {"target.cluster.bootstrap.servers": nowhere}
    program.call_json("PUT", f"{connector_path(name)}/config", config)

    def says_so() -> bool:
        status = program.request("GET", f"{connector_path(name)}/status").content.decode()
        return f"west ({nowhere})" in status or f"{nowhere}: connection refused" in status

    wait_until(says_so, "the status to name the broker", SPARK_TIMEOUT_S)


def test_it_answers_at_once_drains_when_asked_and_leaves_at_once_when_asked_twice(
    sides: MirroredClusters, tmp_path: Path
) -> None:
    name = new_name()
    topic, remote = f"{name}.t", f"east.{name}.t"
    sides.create_topic(topic)
    sides.write_records(topic, range(RECORDS))
    properties = worker_properties(sides.target, name)
    with running_worker(properties, tmp_path / "first") as first:
        assert first.request("GET", "/health").status in (200, 503)
        took_s = time.monotonic() - first.started_at
        assert took_s < 60, f"REST answered after {took_s:.1f} s"
        first.call_json("PUT", f"{connector_path(name)}/config", source_config(sides, name))
        began_at = time.monotonic()
        assert first.get_json("/connectors") == [name]
        is_quick = time.monotonic() - began_at < 5
        assert is_quick or not sides.reverse.source_end_offsets(remote), "REST waits for Spark"
        sides.wait_until_copied(topic, remote, timeout_s=SPARK_TIMEOUT_S)
        first.stop()
    sides.write_records(topic, range(RECORDS, 2 * RECORDS))
    with running_worker(properties, tmp_path / "second") as second:
        sides.wait_until_copied(topic, remote, timeout_s=SPARK_TIMEOUT_S)
        assert "fence" not in second.output.lower()
        sides.assert_copied(topic, remote, fences=0)
        [driver] = second.drivers()
        driver.send_signal(
            signal.SIGSTOP
        )  # so that it cannot have drained before it is asked twice
        try:
            second.send_signal()
            wait_until(lambda: "Kafka Connect stopping" in second.output, "it to begin to end")
            second.send_signal()
            assert second.wait_for_exit(30) == AT_ONCE
        finally:
            driver.send_signal(signal.SIGCONT)
        wait_until(lambda: not session_processes(driver.pid), "Spark to end too", SPARK_TIMEOUT_S)
