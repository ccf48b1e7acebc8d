"""Copying on real Spark between real brokers: no record lost or copied twice after kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from sparkmirror.backoff import Backoff
from sparkmirror.engine.driver.fast_start_spark_home import linked_spark_home
from sparkmirror.engine.driver.spark_conf import FAST_START_JVM_OPTIONS
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.single_job_supervisor import SingleJobSupervisor
from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.processes import RunningProcess, session_processes
from tests.support.spark.observed_driver import JVM, PYTHON_WORKER
from tests.support.spark.status_follower import StatusFollower, own_driver_pid

TOPIC = "spark-copying"
PARTITIONS = 4
TOPICS = {TOPIC: PARTITIONS}
TASKS = 2
FIRST_RUN = 3 * 400
SECOND_RUN = 100
RECORDS_BEFORE_JVM_KILL = 2 * 400

READER = r"""
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.read.parquet(sys.argv[1]).orderBy("topic", "partition", "started")
sys.stdout.write(json.dumps([json.loads(row) for row in rows.toJSON().collect()]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRuns:
    """The results of two runs."""

    flow: CopyFlow
    first: list[DriverStatus]
    second: list[DriverStatus]
    fences_after_first: list[int]
    receipts: Path
    remaining_processes: list[RunningProcess]


def write(writer: BatchWriter, first: int, count: int) -> None:
    for number in range(PARTITIONS):
        writer.write_batches(
            TopicPartition(TOPIC, number), numbered_records(range(first, first + count))
        )


def fence_counts(flow: CopyFlow) -> list[int]:
    """How many fences each partition of the target has."""
    logs = (flow.partition_logs(TopicPartition(TOPIC, number)) for number in range(PARTITIONS))
    return [len(target.marker_offsets) for _, target in logs]


def kill(driver: int, part: str) -> None:
    """Kill the youngest process of a driver whose command has this part."""
    max(session_processes(driver, part), key=lambda process: process.pid).kill()


def next_epoch(supervisor: SingleJobSupervisor, follower: StatusFollower) -> int:
    """End the epoch and wait until its receipts are written; returns the number of the next."""
    epoch = follower.latest.epoch
    supervisor.start_next_epoch()
    return follower.wait_for_status(
        "the next epoch", lambda status: status.epoch > epoch and not status.unwritten_receipts
    ).epoch


def copy_within_an_epoch(
    supervisor: SingleJobSupervisor, follower: StatusFollower, writer: BatchWriter, written: int
) -> int:
    """Write records that the attempts of the running epoch copy; returns how many are written.

    Only the first epoch, which is short, ends by itself.
    """
    while True:
        epoch = next_epoch(supervisor, follower)
        write(writer, written, 100)
        written += 100
        if follower.wait_until_copied().epoch == epoch:
            return written


@pytest.fixture(scope="module")
def copy_runs(
    flow: CopyFlow, writer: BatchWriter, tmp_path_factory: pytest.TempPathFactory
) -> CopyRuns:
    """Run the copy twice; kill a worker and then the JVM in the first run."""
    directory = tmp_path_factory.mktemp("copying")
    log, receipts = directory / "log", directory / "receipts"
    flow.create_topics({TOPIC: (PARTITIONS, {}, {})})
    settings = {"report_interval_s": 0.5, "lease_timeout_s": 60.0}
    job = flow.job(TOPICS, tasks=TASKS, settings=settings, task_timeout_s=50.0)
    spec = DriverSpec(jobs=(job,), receipts=str(receipts), log=str(log), epoch_s=3600.0)
    write(writer, 0, 400)
    backoff = Backoff(initial_s=1.0)
    with SingleJobSupervisor(spec, backoff=backoff) as supervisor:
        follower = StatusFollower(supervisor, flow, TOPICS, log)
        follower.wait_until_copied()
        driver = own_driver_pid()
        written = copy_within_an_epoch(supervisor, follower, writer, 400)
        kill(driver, PYTHON_WORKER)
        write(writer, written, RECORDS_BEFORE_JVM_KILL - written)
        follower.wait_until_copied()
        next_epoch(supervisor, follower)
        kill(driver, JVM)
        write(writer, 800, 400)
        follower.wait_for_status("a restart", lambda s: s.phase is DriverPhase.RESTARTING)
        follower.wait_for_status("another driver", lambda s: s.phase is DriverPhase.RUNNING)
        follower.wait_until_copied()
        supervisor.drain()
        first = follower.wait_for_end()
    fences_after_first = fence_counts(flow)
    write(writer, 1200, SECOND_RUN)
    narrow = DriverSpec(
        jobs=(job,), receipts=str(receipts), log=str(log), epoch_s=3600.0, master="local[1,4]"
    )
    with SingleJobSupervisor(narrow) as supervisor:
        follower = StatusFollower(supervisor, flow, TOPICS, log)
        follower.wait_until_copied()
        supervisor.drain()
        second = follower.wait_for_end()
    return CopyRuns(
        flow=flow,
        first=first,
        second=second,
        fences_after_first=fences_after_first,
        receipts=receipts,
        remaining_processes=session_processes(driver),
    )


@pytest.fixture(scope="module")
def stored_receipts(copy_runs: CopyRuns) -> list[dict[str, Any]]:
    """All receipts, read with Arrow. A column without a value is absent, times are ISO text."""
    read_table: Any = parquet.read_table
    table = read_table(
        copy_runs.receipts, partitioning="hive", coerce_int96_timestamp_unit="ms"
    ).sort_by([("topic", "ascending"), ("partition", "ascending"), ("started", "ascending")])
    return [
        {name: _plain(value) for name, value in row.items() if value is not None}
        for row in table.to_pylist(maps_as_pydicts="strict")
    ]


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value


def test_every_record_is_copied_once_and_in_order_although_processes_are_killed(
    copy_runs: CopyRuns,
) -> None:
    """There is a fence for each takeover: the worker's, the JVM's, and one for a busy computer."""
    for number in range(PARTITIONS):
        source, target = copy_runs.flow.partition_logs(TopicPartition(TOPIC, number))
        there = [(one.key, one.value) for one in target.records]
        assert there == [(one.key, one.value) for one in source.records]
        assert len(there) == FIRST_RUN + SECOND_RUN
        assert len(target.marker_offsets) <= 3


def test_a_dead_jvm_is_replaced_by_a_new_driver(copy_runs: CopyRuns) -> None:
    phases = [status.phase for status in copy_runs.first]
    again = phases.index(DriverPhase.RESTARTING)
    assert "JVM" in copy_runs.first[again].problem
    assert DriverPhase.RUNNING in phases[again:]
    applications = {status.application_id for status in copy_runs.first if status.application_id}
    assert len(applications) == 2
    assert copy_runs.remaining_processes == []


def test_a_killed_worker_does_not_end_the_driver(copy_runs: CopyRuns) -> None:
    before = copy_runs.first[: [s.phase for s in copy_runs.first].index(DriverPhase.RESTARTING)]
    assert [status.phase for status in before].count(DriverPhase.FAILED) <= 1, (
        "only when the JVM died"
    )
    assert any(status.snapshot.events for status in before), "no event for the takeover"


def test_runs_end_drained(copy_runs: CopyRuns) -> None:
    for run in (copy_runs.first, copy_runs.second):
        assert run[-1].phase is DriverPhase.STOPPED
        assert run[-1].problem in ("", copy_runs.second[-1].problem)
        assert {view.state for view in run[-1].snapshot.partitions.values()} <= {"waiting"}


def test_a_run_after_a_drained_one_fences_nothing(copy_runs: CopyRuns) -> None:
    assert fence_counts(copy_runs.flow) == copy_runs.fences_after_first


def test_one_slot_runs_all_tasks(copy_runs: CopyRuns) -> None:
    running = [status for status in copy_runs.second if status.phase is DriverPhase.RUNNING]
    assert {(status.slots, status.tasks) for status in running} == {(1, TASKS)}
    assert {view.task for view in running[-1].snapshot.partitions.values()} == set(range(TASKS))


def test_a_clean_run_leaves_one_exact_receipt_per_partition(
    copy_runs: CopyRuns, stored_receipts: list[dict[str, Any]]
) -> None:
    run = copy_runs.second[-1].application_id
    mine = [receipt for receipt in stored_receipts if receipt["run"] == run]
    assert [receipt["partition"] for receipt in mine] == list(range(PARTITIONS))
    for receipt in mine:
        assert receipt["topic"] == TOPIC
        assert receipt["remote_topic"] == f"source.{TOPIC}"
        assert receipt["flow"] == "source->target"
        assert receipt["records"] == SECOND_RUN
        assert (receipt["source_first"], receipt["source_last"]) == (1200, 1299)
        assert receipt["target_last"] - receipt["target_first"] == SECOND_RUN - 1
        assert receipt["lanes"] == {"plain": 1}
        assert receipt["bytes"] > SECOND_RUN * 100
        task = receipt["partition"] % TASKS
        assert (receipt["epoch"], receipt["task"], receipt["attempt"]) == (1, task, 0)
        assert receipt["first_time"] <= receipt["last_time"] <= receipt["ended"]
        assert receipt["started"] < receipt["ended"]
        assert receipt["day"] == receipt["ended"][:10]
        assert receipt["outcome"] == "done"


def test_receipts_cover_every_record_although_a_worker_was_killed(
    copy_runs: CopyRuns, stored_receipts: list[dict[str, Any]]
) -> None:
    """The driver writes the receipts of the killed attempt."""
    first = next(status.application_id for status in copy_runs.first if status.application_id)
    mine = [receipt for receipt in stored_receipts if receipt["run"] == first]
    lost = [receipt for receipt in mine if receipt["outcome"] == "lost"]
    assert lost
    for receipt in lost:
        assert receipt["started"] < receipt["ended"]
        assert receipt["lanes"] == {}
        assert "first_time" not in receipt
    for number in range(PARTITIONS):
        of_partition = [receipt for receipt in mine if receipt["partition"] == number]
        assert sum(receipt["records"] for receipt in of_partition) == RECORDS_BEFORE_JVM_KILL


def test_receipts_of_all_runs_are_in_one_table(
    copy_runs: CopyRuns, stored_receipts: list[dict[str, Any]]
) -> None:
    """The driver after the dead JVM may have had nothing left to copy."""
    runs = {status.application_id for status in [*copy_runs.first, *copy_runs.second]} - {""}
    first = next(status.application_id for status in copy_runs.first if status.application_id)
    copied_something = {first, copy_runs.second[-1].application_id}
    assert copied_something <= {receipt["run"] for receipt in stored_receipts} <= runs


@pytest.mark.soak
def test_spark_reads_the_receipts_of_all_runs_as_one_table(
    copy_runs: CopyRuns, stored_receipts: list[dict[str, Any]]
) -> None:
    """Arrow, which needs no JVM, reads the same rows for the other tests."""
    home = linked_spark_home(os.environ)
    assert home is not None
    quick = {
        "SPARK_HOME": str(home.path),
        "SPARK_SUBMIT_OPTS": f"{FAST_START_JVM_OPTIONS} -XX:SharedArchiveFile={home.cds_archive}",
        "PYSPARK_PYTHON": sys.executable,
    }
    answer = subprocess.run(
        [sys.executable, "-c", READER, str(copy_runs.receipts)],
        env={**os.environ, **quick},
        capture_output=True,
        text=True,
        check=True,
    )
    times = ("first_time", "last_time", "started", "ended")
    found = [
        {
            name: datetime.fromisoformat(value).replace(tzinfo=None).isoformat()
            if name in times
            else value
            for name, value in row.items()
        }
        for row in json.loads(answer.stdout)
    ]
    assert found == stored_receipts


def test_receipts_do_not_overlap(stored_receipts: list[dict[str, Any]]) -> None:
    for number in range(PARTITIONS):
        mine = [receipt for receipt in stored_receipts if receipt["partition"] == number]
        ranges = sorted((r["source_first"], r["source_last"]) for r in mine)
        assert all(last < first for (_, last), (first, _) in zip(ranges, ranges[1:], strict=False))
        assert sum(receipt["records"] for receipt in mine) <= FIRST_RUN + SECOND_RUN
