"""Changes of epochs on real Spark while records flow: nothing pauses, and kills lose nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pyarrow import parquet

from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverStatus
from sparkmirror.engine.supervisor.single_job_supervisor import SingleJobSupervisor
from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.continuous_load import ContinuousLoad
from tests.support.kafka.partition_log import PartitionLog
from tests.support.processes import session_processes
from tests.support.spark.observed_driver import PYTHON_WORKER
from tests.support.spark.status_follower import StatusFollower, own_driver_pid

log = logging.getLogger(__name__)

PARTITIONS = 4
TASKS = 2
CHANGES = 4
KILL_DELAYS_S = (0.0, 0.02, 0.1, 0.25, 0.5)
"""How long after the command that ends an epoch a worker is killed."""
FENCES = 2 * len(KILL_DELAYS_S) + 2
"""One for each takeover, and some for a busy computer."""
LONGEST_PAUSE_S = 0.3
"""Less than Spark needs from the end of an epoch to the first slot of the next one, plus grants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRun:
    """The results of one driver."""

    logs: list[tuple[PartitionLog, PartitionLog]]
    """The source partitions and the remote ones, whose timestamps are those of the append."""
    receipts: list[dict[str, Any]]
    statuses: list[DriverStatus]
    log: str


Disturb = Callable[[SingleJobSupervisor, StatusFollower], None]


def run_epochs(flow: CopyFlow, directory: Path, topic: str, disturb: Disturb) -> EpochRun:
    """Copy a topic under load while `disturb` changes epochs; then drain."""
    driver_log, receipts = directory / "log", directory / "receipts"
    append_times = {"message.timestamp.type": "LogAppendTime"}
    flow.create_topics({topic: (PARTITIONS, {}, append_times)})
    settings = {"report_interval_s": 0.5, "lease_timeout_s": 60.0}
    job = flow.job({topic: PARTITIONS}, tasks=TASKS, settings=settings, task_timeout_s=50.0)
    spec = DriverSpec(jobs=(job,), receipts=str(receipts), log=str(driver_log), epoch_s=3600.0)
    source = flow.source_properties["bootstrap.servers"]
    with SingleJobSupervisor(spec) as supervisor:
        follower = StatusFollower(supervisor, flow, {topic: PARTITIONS}, driver_log)
        with ContinuousLoad(source, topic, PARTITIONS, interval_s=0.01):
            follower.wait_for_status("the second epoch", lambda status: status.epoch == 2)
            disturb(supervisor, follower)
        follower.wait_until_copied()
        supervisor.drain()
        statuses = follower.wait_for_end()
    read_table: Any = parquet.read_table
    table = read_table(receipts, partitioning="hive", coerce_int96_timestamp_unit="ms")
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    return EpochRun(
        logs=[flow.partition_logs(partition) for partition in partitions],
        receipts=table.to_pylist(maps_as_pydicts="strict"),
        statuses=statuses,
        log=driver_log.read_text("utf-8", errors="replace"),
    )


def next_epoch(supervisor: SingleJobSupervisor, follower: StatusFollower) -> None:
    """End the epoch; wait for the next one, and let records flow in it."""
    epoch = follower.latest.epoch
    supervisor.start_next_epoch()
    follower.wait_for_status("the next epoch", lambda status: status.epoch > epoch)
    time.sleep(1.0)


def change_epochs(supervisor: SingleJobSupervisor, follower: StatusFollower) -> None:
    for _ in range(CHANGES):
        next_epoch(supervisor, follower)


def kill_around_changes(supervisor: SingleJobSupervisor, follower: StatusFollower) -> None:
    """Kill a worker a little later in each change; the last change has no kill."""
    driver = own_driver_pid()
    for delay_s in KILL_DELAYS_S:
        epoch = follower.latest.epoch
        supervisor.start_next_epoch()
        time.sleep(delay_s)
        max(session_processes(driver, PYTHON_WORKER), key=lambda process: process.pid).kill()
        follower.wait_for_status("the next epoch", lambda status: status.epoch > epoch)  # noqa: B023
        time.sleep(2.0)
    next_epoch(supervisor, follower)


@pytest.fixture(scope="module")
def quiet_run(flow: CopyFlow, tmp_path_factory: pytest.TempPathFactory) -> EpochRun:
    return run_epochs(flow, tmp_path_factory.mktemp("epochs"), "epoch-changes", change_epochs)


@pytest.fixture(scope="module")
def killed_run(other_flow: CopyFlow, tmp_path_factory: pytest.TempPathFactory) -> EpochRun:
    directory = tmp_path_factory.mktemp("kills")
    return run_epochs(other_flow, directory, "killed-epochs", kill_around_changes)


@pytest.fixture(scope="module")
def other_flow(flow: CopyFlow) -> CopyFlow:
    """Another flow between the same clusters."""
    return replace(flow, name=f"{flow.name}-killed")


def test_one_attempt_of_each_task_copies_through_all_epochs(quiet_run: EpochRun) -> None:
    """Its receipts follow each other without a gap in time, and nothing was granted again."""
    for number in range(PARTITIONS):
        mine = [one for one in quiet_run.receipts if one["partition"] == number]
        mine.sort(key=lambda one: one["epoch"])
        assert [one["epoch"] for one in mine] == list(range(1, CHANGES + 3))
        assert {(one["attempt"], one["outcome"]) for one in mine} == {(0, "done")}
        for before, after in pairwise(mine):
            assert after["started"] == before["ended"]
            assert after["source_first"] == before["source_last"] + 1
    assert quiet_run.statuses[-1].snapshot.lost_attempts == 0
    assert "its tasks move" not in quiet_run.log


def test_records_flow_while_spark_changes_epochs(quiet_run: EpochRun) -> None:
    """A pause of the writer on a busy computer is none of the mirror's."""
    last = max(one["epoch"] for one in quiet_run.receipts)
    pauses = [
        longest_pause_ms(target, one["ended"]) - longest_pause_ms(source, one["ended"])
        for one in quiet_run.receipts
        if one["epoch"] < last
        for source, target in [quiet_run.logs[one["partition"]]]
    ]
    log.info("pauses of partitions around the changes of epochs: %s ms more", sorted(pauses))
    assert median(pauses) < LONGEST_PAUSE_S * 1000


def longest_pause_ms(partition: PartitionLog, end_of_epoch: datetime) -> int:
    """How long at most a partition got nothing around the end of an epoch."""
    end_ms = end_of_epoch.replace(tzinfo=UTC).timestamp() * 1000
    written = sorted(header.max_timestamp for header in partition.batch_headers)
    return max(
        after - before
        for before, after in pairwise(written)
        if after > end_ms - 500 and before < end_ms + 1500
    )


def test_every_record_is_there_once_without_a_fence(quiet_run: EpochRun) -> None:
    for source, target in quiet_run.logs:
        assert_copied_values(source, target)
        assert target.marker_offsets == []


def test_kills_around_changes_lose_and_repeat_nothing(killed_run: EpochRun) -> None:
    for source, target in killed_run.logs:
        assert_copied_values(source, target)
        assert len(target.marker_offsets) <= FENCES
    assert killed_run.statuses[-1].snapshot.lost_attempts >= 1


@pytest.mark.parametrize("run", ["quiet_run", "killed_run"])
def test_receipts_have_every_record_once(run: str, request: pytest.FixtureRequest) -> None:
    found: EpochRun = request.getfixturevalue(run)
    for number, (source, _) in enumerate(found.logs):
        mine = [one for one in found.receipts if one["partition"] == number]
        ranges = sorted((one["source_first"], one["source_last"]) for one in mine)
        assert all(last < first for (_, last), (first, _) in pairwise(ranges)), ranges
        assert sum(one["records"] for one in mine) == len(source.records)


def assert_copied_values(source: PartitionLog, target: PartitionLog) -> None:
    there = [(one.key, one.value) for one in target.records]
    assert there == [(one.key, one.value) for one in source.records]
    assert there
