"""What the herder writes to the config and status topics, compared with what Java wrote.

The recorded lifecycle is repeated; fake connectors get the recorded partitions and groups. Config
records must be the same to the byte and in the same order, statuses the same states in the same
order for each key.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby, zip_longest
from typing import Any

from sparkmirror.mirror.connect_topics.connect_configs import (
    ConnectorConfig,
    TaskConfig,
    decode_config_record,
)
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from tests.support.connect.fake_connectors import ConnectorProbe
from tests.support.connect.in_memory_herder import (
    HerderHarness,
    exactly_once_settings,
    poll_until,
    running_herder,
)
from tests.support.golden import golden_records


def recorded(file: str, topic: str) -> list[RecordBytes]:
    records = golden_records(f"topics/{file}.connect-topics.jsonl")
    chosen = sorted(
        (one for one in records if one.topic == topic),
        key=lambda one: (one.timestamp_ms, one.offset),
    )
    return [one.record for one in chosen]


def configs(records: Iterable[RecordBytes]) -> list[tuple[str, Any]]:
    """Every record but the session key, which is for workers among themselves."""
    return [
        ((record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in records
        if record.key != b"session-key"
    ]


def statuses(records: Iterable[RecordBytes]) -> dict[str, list[str | None]]:
    """The states of each key in order; Java writes some records several times in a row."""
    states: dict[str, list[str | None]] = defaultdict(list)
    for record in records:
        value = None if record.value is None else json.loads(record.value)
        state = None if value is None else value.get("state", "used")
        states[(record.key or b"").decode()].append(state)
    return {key: [state for state, _ in groupby(values)] for key, values in states.items()}


def connector(records: Iterable[RecordBytes], name: str, number: int = 0) -> dict[str, str | None]:
    """A config as it was sent."""
    found = [
        change.properties
        for record in records
        if isinstance(change := decode_config_record(record), ConnectorConfig)
        and change.connector == name
        and change.properties is not None
    ]
    return dict(found[number])


def recorded_probe(records: Iterable[RecordBytes]) -> ConnectorProbe:
    """The recorded partitions and groups, in an order that gives the recorded assignments."""
    assignments: dict[int, list[str]] = {}
    groups: list[str] = []
    for record in records:
        change = decode_config_record(record)
        if isinstance(change, TaskConfig) and "Source" in str(change.properties):
            assigned = str(change.properties["task.assigned.partitions"]).split(",")
            assignments.setdefault(change.task, assigned)
        elif isinstance(change, TaskConfig) and "task.assigned.groups" in change.properties:
            groups = str(change.properties["task.assigned.groups"]).split(",")
    in_order = [
        one
        for turn in zip_longest(*(assignments[n] for n in sorted(assignments)))
        for one in turn
        if one
    ]
    return ConnectorProbe(
        partitions=[TopicPartition.parse(one) for one in in_order], consumer_groups=groups
    )


def of(records: Iterable[RecordBytes], name: str) -> list[RecordBytes]:
    return [record for record in records if name in (record.key or b"").decode()]


def restart(harness: HerderHarness, name: str, *, tasks: int) -> None:
    plans = harness.probe.calls.count(f"plan {name}")  # it plans after RUNNING is written
    harness.herder.restart_connector_and_tasks(name, include_tasks=True, only_failed=False)
    poll_until(
        lambda: harness.probe.calls.count(f"plan {name}") > plans, "the connector to restart"
    )
    harness.wait_for_states(name, *["RUNNING"] * (tasks + 1))


def wait_for_removed_statuses(harness: HerderHarness, name: str) -> None:
    """Wait until the last status of the connector and of each task is a tombstone."""

    def stored() -> list[str]:
        last = {
            key: states[-1]
            for key, states in statuses(of(harness.status_log.records, name)).items()
        }
        return [key for key, state in last.items() if state is not None]

    poll_until(lambda: not stored(), f"no status of {name} and its tasks")


def test_a_lifecycle_writes_the_records_that_java_wrote() -> None:
    java = recorded("connect-mode", "connect-configs")
    names = {"mm2-msc": 2, "mm2-cpc": 1, "mm2-hbc": 1}
    with running_herder(probe=recorded_probe(java)) as harness:
        herder = harness.herder
        for name, tasks in names.items():
            herder.create_connector(name, connector(java, name), None)
            harness.wait_for_states(name, *["RUNNING"] * (tasks + 1))
        restart(harness, "mm2-msc", tasks=2)
        restart(harness, "mm2-cpc", tasks=1)
        herder.pause_connector("mm2-hbc")
        harness.wait_for_states("mm2-hbc", "PAUSED", "PAUSED")
        herder.stop_connector("mm2-cpc")
        harness.wait_for_states("mm2-cpc", "STOPPED")
        herder.resume_connector("mm2-hbc")
        harness.wait_for_states("mm2-hbc", "RUNNING", "RUNNING")
        for name in names:
            herder.delete_connector(name)
            wait_for_removed_statuses(harness, name)
    for name in names:
        assert configs(of(harness.config_log.records, name)) == configs(of(java, name))
    java_statuses = recorded("connect-mode", "connect-status")
    assert states_only(harness.status_log.records) == states_only(java_statuses)
    heartbeats_key = "status-topic-heartbeats:connector-mm2-hbc"
    assert (
        statuses(harness.status_log.records)[heartbeats_key]
        == statuses(java_statuses)[heartbeats_key]
        == ["used", None]
    )


def states_only(records: Iterable[RecordBytes]) -> dict[str, list[str | None]]:
    """The statuses of connectors and tasks, without active topics: those depend on the source."""
    return {key: value for key, value in statuses(records).items() if "status-topic" not in key}


def test_exactly_once_support_writes_the_fencing_records_that_java_wrote() -> None:
    java = recorded("exactly-once", "connect-configs")
    name = "mm2-msc"
    with running_herder(exactly_once_settings(), probe=recorded_probe(java)) as harness:
        herder = harness.herder
        herder.create_connector(name, connector(java, name), None)
        harness.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
        herder.put_connector_config(name, connector(java, name, 1))
        harness.wait_for_states(name, "RUNNING", "RUNNING")
        restart(harness, name, tasks=1)
        herder.stop_connector(name)
        herder.reset_connector_offsets(name)
        herder.resume_connector(name)
        harness.wait_for_states(name, "RUNNING", "RUNNING")
        herder.stop_connector(name)
        herder.reset_connector_offsets(name)
        herder.delete_connector(name)
        harness.wait_for_states(name)
        assert configs(harness.config_log.records) == configs(of(java, name))
        assert harness.fenced_ids == [
            ["connect-cluster-mm2-msc-0", "connect-cluster-mm2-msc-1"],
            ["connect-cluster-mm2-msc-0"],
            [],
            ["connect-cluster-mm2-msc-0"],
        ]
