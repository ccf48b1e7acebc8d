"""The life of a driver on real Spark, without Kafka: epochs, a killed worker, a signal, the end."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sparkmirror.copy.control.messages import EpochAssignment
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.driver.spark_conf import SPARE_SLOTS
from sparkmirror.engine.driver.spark_home import linked_spark_home
from sparkmirror.engine.noop_conductor import UNREACHABLE_CLIENT, job_without_partitions
from sparkmirror.engine.spark.data_source import TaskInputPartition
from sparkmirror.engine.supervisor.driver_command import DriverAction, DriverCommand
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from tests.support.processes import RunningProcess
from tests.support.spark.noop_driver import LATE_CONNECTOR
from tests.support.spark.observed_driver import JVM, PYTHON_WORKER, ObservedDriver

EPOCH_S = 3600.0
"""An epoch ends when the test says so: how long something takes decides nothing."""
TASKS = 2
SECRET = "a-secret-of-a-client"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRun:
    """What happened."""

    statuses: list[DriverStatus]
    after_kill: list[DriverStatus]
    seen: list[RunningProcess]
    environments: str
    killed: int
    killed_in_epoch: int
    code: int
    remaining_processes: list[RunningProcess]
    temporary: Path
    log: str


@pytest.fixture(scope="module")
def life(importable: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverRun]:
    """Run a driver through all of it."""
    directory = tmp_path_factory.mktemp("life")
    temporary = tmp_path_factory.mktemp("temporary")
    job = job_without_partitions(TASKS)
    properties = UNREACHABLE_CLIENT | {"sasl.password": SECRET}
    job = replace(job, settings=replace(job.settings, source=properties, target=properties))
    assignment = DriverSpec(
        job=job,
        receipts=str(directory / "receipts"),
        log=str(directory / "log"),
        epoch_s=EPOCH_S,
        conf={"spark.hadoop.fs.s3a.secret.key": SECRET},
    )
    driver = ObservedDriver(assignment, "tests.support.spark.noop_driver", temporary)
    try:
        driver.wait_for_status("the first epoch", lambda s: s.epoch == 1 and joined(s) == 2)
        before = next_epoch(driver, 2)
        victim = before.snapshot.lanes["pids"]["0"]
        [process] = [one for one in driver.processes(PYTHON_WORKER) if one.pid == victim]
        said_before = len(driver.statuses)
        process.kill()
        driver.wait_for_status("another attempt", lambda s: s.snapshot.lanes["pids"]["0"] != victim)
        for number in (1, 2):
            next_epoch(driver, before.epoch + number, attempts_lost=1)
        seen = driver.processes()
        environments = "".join(one.environment() for one in seen)
        driver.send_signal(signal.SIGTERM)
        code = driver.wait_for_exit()
    finally:
        driver.close()
    yield DriverRun(
        statuses=driver.statuses,
        after_kill=driver.statuses[said_before:],
        seen=seen,
        environments=environments,
        killed=victim,
        killed_in_epoch=before.epoch,
        code=code,
        remaining_processes=driver.remaining_processes(),
        temporary=temporary,
        log=Path(assignment.log).read_text("utf-8"),
    )


def joined(status: DriverStatus) -> int:
    return status.snapshot.lanes["counts"].get("joined", 0)


def next_epoch(driver: ObservedDriver, epoch: int, attempts_lost: int = 0) -> DriverStatus:
    """Have every task start anew, and wait until all are there."""
    driver.send_command(DriverCommand(action=DriverAction.NEXT_EPOCH))
    return driver.wait_for_status(
        f"epoch {epoch}",
        lambda s: s.epoch >= epoch and joined(s) == TASKS * s.epoch + attempts_lost,
    )


def test_a_driver_starts_runs_and_stops(life: DriverRun) -> None:
    phases = list(dict.fromkeys(status.phase for status in life.statuses))
    assert phases[:2] == [DriverPhase.STARTING, DriverPhase.RUNNING]
    assert phases[-1] is DriverPhase.STOPPED
    troubles = {status.problem for status in life.statuses if status.problem}
    assert all("tasks have a slot" in trouble for trouble in troubles), "a slow Spark is told so"


def test_a_driver_names_its_application_and_its_slots(life: DriverRun) -> None:
    running = [status for status in life.statuses if status.phase is DriverPhase.RUNNING][-1]
    assert running.application_id.startswith("local-")
    assert (running.slots, running.tasks) == (TASKS + SPARE_SLOTS, TASKS)


def test_epochs_follow_one_another_and_every_task_comes_to_each(life: DriverRun) -> None:
    numbers = list(dict.fromkeys(status.epoch for status in life.statuses))
    assert numbers == list(range(numbers[-1] + 1))
    last = life.statuses[-1].snapshot.lanes["counts"]
    assert last["joined"] >= TASKS * (numbers[-1] - 1)
    assert last["end_epoch"] >= numbers[-1] - 1


def test_tasks_say_goodbye_before_they_go(life: DriverRun) -> None:
    last = life.statuses[-1].snapshot.lanes["counts"]
    assert last["done"] == last["joined"] - 1, "all but the one that was killed"


def test_a_killed_worker_is_replaced_within_its_epoch(life: DriverRun) -> None:
    after = [
        status for status in life.after_kill if status.snapshot.lanes["pids"]["0"] != life.killed
    ]
    assert after[0].epoch == life.killed_in_epoch


def test_a_signal_drains_the_driver(life: DriverRun) -> None:
    assert life.code == 0
    assert life.statuses[-1].phase is DriverPhase.STOPPED


def test_nothing_is_left_behind(life: DriverRun) -> None:
    assert life.remaining_processes == []
    assert list(life.temporary.iterdir()) == []


def test_no_secret_is_seen_from_outside(life: DriverRun) -> None:
    commands = " ".join(process.command for process in life.seen)
    assert JVM in commands
    for place in (commands, life.environments, life.log):
        assert SECRET not in place


def test_spark_runs_from_the_quick_home_with_its_archive(life: DriverRun) -> None:
    home = linked_spark_home(
        {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    )
    assert home is not None
    assert f"SPARK_HOME={home.path}\0" in life.environments
    [jvm] = [process for process in life.seen if JVM in process.command]
    assert f"-XX:SharedArchiveFile={home.cds_archive}" in jvm.command


def test_troubles_are_told_and_outlived(importable: None, tmp_path: Path) -> None:
    """A cluster that cannot be reached at first."""
    assignment = DriverSpec(
        job=replace(job_without_partitions(1), connector=LATE_CONNECTOR),
        receipts=str(tmp_path / "receipts"),
        log=str(tmp_path / "log"),
        epoch_s=1.0,
    )
    driver = ObservedDriver(assignment, "tests.support.spark.noop_driver", tmp_path)
    try:
        told = driver.wait_for_status(
            "the cluster's trouble", lambda s: "not there yet" in s.problem
        )
        assert told.problem.startswith("waiting for cluster source: ")
        assert told.phase is DriverPhase.STARTING
        driver.wait_for_status("an end of the trouble", lambda status: not status.problem)
        driver.wait_for_status("Spark", lambda status: status.phase is DriverPhase.RUNNING)
        driver.wait_for_status("the next epoch", lambda status: status.epoch > 1)
        driver.send_signal(signal.SIGINT)
        assert driver.wait_for_exit() == 0
    finally:
        driver.close()


def test_a_partition_shows_no_secret() -> None:
    endpoint = ControlEndpoint(host="here", port=1, secret=b"hidden")
    assignment = EpochAssignment(number=1, tasks=1)
    partition = TaskInputPartition(assignment, 0, flow="A->B", connector="c", endpoint=endpoint)
    assert "hidden" not in repr(partition)
    assert pickle.loads(pickle.dumps(partition)).endpoint == endpoint
