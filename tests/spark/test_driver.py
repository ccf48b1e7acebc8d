"""A driver on real Spark, without Kafka: epochs, a killed worker, commands, a signal, the end."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.messages import EpochAssignment
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.driver.fast_start_spark_home import linked_spark_home
from sparkmirror.engine.driver.spark_conf import SPARE_CORES
from sparkmirror.engine.noop_conductor import UNREACHABLE_CLIENT, job_without_partitions
from sparkmirror.engine.spark.data_source import SlotInputPartition
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand
from tests.support.processes import RunningProcess
from tests.support.spark.noop_driver import LATE_CONNECTOR
from tests.support.spark.observed_driver import JVM, PYTHON_WORKER, ObservedDriver

EPOCH_S = 3600.0
"""Epochs end by command only, so no test depends on time."""
TASKS = 2
SECRET = "a-secret-of-a-client"
WAITING = "waiting for source cluster source: "


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRun:
    """The result of one driver."""

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
def driver_run(
    tests_on_pythonpath: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverRun]:
    """Run a driver through an outage, epochs, a killed worker, a change of log levels, SIGTERM."""
    directory = tmp_path_factory.mktemp("driver")
    temporary = tmp_path_factory.mktemp("temporary")
    job = replace(job_without_partitions(TASKS), connector=LATE_CONNECTOR)
    properties = UNREACHABLE_CLIENT | {"sasl.password": SECRET}
    job = replace(job, settings=replace(job.settings, source=properties, target=properties))
    spec = DriverSpec(
        jobs=(job,),
        receipts=str(directory / "receipts"),
        log=str(directory / "log"),
        epoch_s=EPOCH_S,
        conf={"spark.hadoop.fs.s3a.secret.key": SECRET},
    )
    driver = ObservedDriver(spec, "tests.support.spark.noop_driver", temporary)
    try:
        driver.wait_for_status("the first epoch", lambda s: s.epoch == 1 and joined(s) == 2)
        before = next_epoch(driver, 2)
        victim = before.snapshot.lanes["pids"]["0"]
        [process] = [one for one in driver.processes(PYTHON_WORKER) if one.pid == victim]
        statuses_before = len(driver.statuses)
        process.kill()
        driver.wait_for_status("another attempt", lambda s: s.snapshot.lanes["pids"]["0"] != victim)
        for number in (1, 2):
            next_epoch(driver, before.epoch + number)
        driver.send_command(
            DriverCommand(action=DriverAction.SET_LOG_LEVELS, log_levels={"sparkmirror.copy": 10})
        )
        seen = driver.processes()
        environments = "".join(one.environment() for one in seen)
        driver.send_signal(signal.SIGTERM)
        code = driver.wait_for_exit()
    finally:
        driver.close()
    yield DriverRun(
        statuses=driver.statuses,
        after_kill=driver.statuses[statuses_before:],
        seen=seen,
        environments=environments,
        killed=victim,
        killed_in_epoch=before.epoch,
        code=code,
        remaining_processes=driver.remaining_processes(),
        temporary=temporary,
        log=Path(spec.log).read_text("utf-8"),
    )


def joined(status: DriverStatus) -> int:
    return status.snapshot.lanes["counts"].get("joined", 0)


def connected(status: DriverStatus) -> int:
    return joined(status) - status.snapshot.lanes["counts"].get("left", 0)


def next_epoch(driver: ObservedDriver, epoch: int) -> DriverStatus:
    """Start the next epoch and wait until all its tasks are connected."""
    driver.send_command(DriverCommand(action=DriverAction.NEXT_EPOCH))
    return driver.wait_for_status(
        f"epoch {epoch}",
        lambda s: s.epoch >= epoch and connected(s) == TASKS,
    )


def test_a_driver_starts_runs_and_stops(driver_run: DriverRun) -> None:
    phases = list(dict.fromkeys(status.phase for status in driver_run.statuses))
    assert phases[:2] == [DriverPhase.STARTING, DriverPhase.RUNNING]
    assert phases[-1] is DriverPhase.STOPPED
    problems = {status.problem for status in driver_run.statuses if status.problem}
    assert all("tasks have a slot" in one or WAITING in one for one in problems), (
        "no other problem than the late cluster and a slow Spark"
    )


def test_a_driver_names_its_application_and_its_slots(driver_run: DriverRun) -> None:
    running = [status for status in driver_run.statuses if status.phase is DriverPhase.RUNNING][-1]
    assert running.application_id.startswith("local-")
    assert (running.slots, running.tasks) == ((os.cpu_count() or 1) + SPARE_CORES, TASKS)


def test_epochs_have_consecutive_numbers_and_tasks_stay_over_their_changes(
    driver_run: DriverRun,
) -> None:
    numbers = list(dict.fromkeys(status.epoch for status in driver_run.statuses))
    assert numbers == list(range(numbers[-1] + 1))
    last = driver_run.statuses[-1].snapshot.lanes["counts"]
    assert last["joined"] < TASKS * numbers[-1], "they would join again in every epoch"
    assert last["epoch-ended"] >= numbers[-1] - 1


def test_tasks_send_done_before_they_leave(driver_run: DriverRun) -> None:
    last = driver_run.statuses[-1].snapshot.lanes["counts"]
    assert last["done"] == last["joined"] - 1, "all but the one that was killed"


def test_a_killed_worker_is_replaced_within_its_epoch(driver_run: DriverRun) -> None:
    after = [
        status
        for status in driver_run.after_kill
        if status.snapshot.lanes["pids"]["0"] != driver_run.killed
    ]
    assert after[0].epoch == driver_run.killed_in_epoch


def test_a_driver_sets_log_levels_by_command(driver_run: DriverRun) -> None:
    assert "Log levels set: {'sparkmirror.copy': 10}" in driver_run.log


def test_a_signal_drains_the_driver(driver_run: DriverRun) -> None:
    assert driver_run.code == 0
    assert driver_run.statuses[-1].phase is DriverPhase.STOPPED


def test_a_driver_leaves_no_files_and_processes(driver_run: DriverRun) -> None:
    assert driver_run.remaining_processes == []
    assert list(driver_run.temporary.iterdir()) == []


def test_no_secret_is_in_arguments_environment_or_log(driver_run: DriverRun) -> None:
    commands = " ".join(process.command for process in driver_run.seen)
    assert JVM in commands
    for text in (commands, driver_run.environments, driver_run.log):
        assert SECRET not in text


def test_spark_runs_from_the_linked_home_with_its_archive(driver_run: DriverRun) -> None:
    home = linked_spark_home(
        {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    )
    assert home is not None
    assert f"SPARK_HOME={home.path}\0" in driver_run.environments
    [jvm] = [process for process in driver_run.seen if JVM in process.command]
    assert f"-XX:SharedArchiveFile={home.cds_archive}" in jvm.command


def test_the_status_names_an_unreachable_cluster_until_it_answers(driver_run: DriverRun) -> None:
    waiting = [one for one in driver_run.statuses if "not there yet" in one.problem]
    assert waiting
    assert all(one.problem.startswith(WAITING) for one in waiting)
    assert {one.phase for one in waiting} == {DriverPhase.STARTING}
    later = driver_run.statuses[driver_run.statuses.index(waiting[-1]) + 1 :]
    assert "" in {one.problem for one in later}
    assert DriverPhase.RUNNING in {one.phase for one in later}


def test_a_partition_shows_no_secret() -> None:
    endpoint = ControlEndpoint(
        host="here", port=1, protocol=ControlProtocol.TLS_PSK, secret=b"hidden"
    )
    assignment = EpochAssignment(number=1, slots=1)
    partition = SlotInputPartition(assignment, 0, endpoint)
    assert "hidden" not in repr(partition)
    assert pickle.loads(pickle.dumps(partition)).endpoint == endpoint
