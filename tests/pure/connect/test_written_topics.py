"""What the herder writes to the config and status topics, compared with what Java's wrote.

The recorded lifecycle is led again; the small connectors are given the recorded work. Config
records must be the same to the byte and in the same order, statuses the same states in the same
order for each key.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby, zip_longest
from typing import Any

from sparkmirror.mirror.connect_configs import ConnectorConfig, TaskConfig, decode
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.model import TopicPartition
from tests.support.golden import golden_records
from tests.support.herders import Stage, eventually, exactly_once, herding
from tests.support.small_connectors import Watch


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
        said = None if value is None else value.get("state", "used")
        states[(record.key or b"").decode()].append(said)
    return {key: [state for state, _ in groupby(values)] for key, values in states.items()}


def connector(records: Iterable[RecordBytes], name: str, number: int = 0) -> dict[str, str | None]:
    """A config as it was sent."""
    found = [
        change.properties
        for record in records
        if isinstance(change := decode(record), ConnectorConfig)
        and change.connector == name
        and change.properties is not None
    ]
    return dict(found[number])


def work(records: Iterable[RecordBytes]) -> Watch:
    """The recorded partitions and groups, in an order from which dealing makes the same hands."""
    hands: dict[int, list[str]] = {}
    groups: list[str] = []
    for record in records:
        change = decode(record)
        if isinstance(change, TaskConfig) and "Source" in str(change.properties):
            assigned = str(change.properties["task.assigned.partitions"]).split(",")
            hands.setdefault(change.task, assigned)
        elif isinstance(change, TaskConfig) and "task.assigned.groups" in change.properties:
            groups = str(change.properties["task.assigned.groups"]).split(",")
    dealt = [one for turn in zip_longest(*(hands[n] for n in sorted(hands))) for one in turn if one]
    return Watch(partitions=[TopicPartition.parse(one) for one in dealt], consumers=groups)


def of(records: Iterable[RecordBytes], name: str) -> list[RecordBytes]:
    return [record for record in records if name in (record.key or b"").decode()]


def restart(stage: Stage, name: str, *, tasks: int) -> None:
    starts = stage.watch.calls.count(f"start {name}")
    stage.herder.restart_with(name, include_tasks=True, only_failed=False)
    eventually(lambda: stage.watch.calls.count(f"start {name}") > starts, "it was begun anew")
    stage.reaches(name, *["RUNNING"] * (tasks + 1))


def test_a_lifecycle_leaves_the_records_that_java_left() -> None:
    java = recorded("connect-mode", "connect-configs")
    names = {"mm2-msc": 2, "mm2-cpc": 1, "mm2-hbc": 1}
    with herding(watch=work(java)) as stage:
        herder = stage.herder
        for name, tasks in names.items():
            herder.create(name, connector(java, name), None)
            stage.reaches(name, *["RUNNING"] * (tasks + 1))
        restart(stage, "mm2-msc", tasks=2)
        restart(stage, "mm2-cpc", tasks=1)
        herder.pause("mm2-hbc")
        stage.reaches("mm2-hbc", "PAUSED", "PAUSED")
        herder.stop("mm2-cpc")
        stage.reaches("mm2-cpc", "STOPPED")
        herder.resume("mm2-hbc")
        stage.reaches("mm2-hbc", "RUNNING", "RUNNING")
        for name in names:
            herder.delete(name)
            stage.reaches(name)
    for name in names:
        assert configs(of(stage.configs.records, name)) == configs(of(java, name))
    theirs = recorded("connect-mode", "connect-status")
    assert states_only(stage.statuses.records) == states_only(theirs)
    beats = "status-topic-heartbeats:connector-mm2-hbc"
    assert statuses(stage.statuses.records)[beats] == statuses(theirs)[beats] == ["used", None]


def states_only(records: Iterable[RecordBytes]) -> dict[str, list[str | None]]:
    """Of connectors and tasks; which topics are used depends on what was there to copy."""
    return {key: value for key, value in statuses(records).items() if "status-topic" not in key}


def test_exactly_once_support_leaves_the_fencing_records_that_java_left() -> None:
    java = recorded("exactly-once", "connect-configs")
    name = "mm2-msc"
    with herding(exactly_once(), watch=work(java)) as stage:
        herder = stage.herder
        herder.create(name, connector(java, name), None)
        stage.reaches(name, "RUNNING", "RUNNING", "RUNNING")
        herder.put_config(name, connector(java, name, 1))
        stage.reaches(name, "RUNNING", "RUNNING")
        restart(stage, name, tasks=1)
        herder.stop(name)
        herder.reset_offsets(name)
        herder.resume(name)
        stage.reaches(name, "RUNNING", "RUNNING")
        herder.stop(name)
        herder.reset_offsets(name)
        herder.delete(name)
        stage.reaches(name)
        assert configs(stage.configs.records) == configs(of(java, name))
        assert stage.fenced == [
            ["connect-cluster-mm2-msc-0", "connect-cluster-mm2-msc-1"],
            ["connect-cluster-mm2-msc-0"],
            [],
            ["connect-cluster-mm2-msc-0"],
        ]
