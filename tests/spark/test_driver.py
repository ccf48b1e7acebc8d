"""The life of a driver on real Spark, without Kafka: epochs, a killed worker, a signal, the end."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.conf import SPARE_SLOTS
from sparkmirror.engine.home import quick_home
from sparkmirror.engine.order import Do, Order
from sparkmirror.engine.post import Post
from sparkmirror.engine.rehearsal import NOWHERE, rehearsed_job
from sparkmirror.engine.source import TaskPartition
from sparkmirror.engine.status import Phase, Status
from tests.support.drivers import JVM, WORKER, WatchedDriver
from tests.support.processes import Seen
from tests.support.spark_driver import LATE

EPOCH_S = 3600.0
"""An epoch ends when the test says so: how long something takes decides nothing."""
TASKS = 2
SECRET = "a-secret-of-a-client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What happened."""

    statuses: list[Status]
    after_death: list[Status]
    seen: list[Seen]
    environments: str
    killed: int
    epoch_of_death: int
    code: int
    left: list[Seen]
    temporary: Path
    log: str


@pytest.fixture(scope="module")
def life(importable: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """Run a driver through all of it."""
    directory = tmp_path_factory.mktemp("life")
    temporary = tmp_path_factory.mktemp("temporary")
    job = rehearsed_job(TASKS)
    properties = NOWHERE | {"sasl.password": SECRET}
    job = replace(job, settings=replace(job.settings, source=properties, target=properties))
    assignment = Assignment(
        job=job,
        receipts=str(directory / "receipts"),
        log=str(directory / "log"),
        epoch_s=EPOCH_S,
        conf={"spark.hadoop.fs.s3a.secret.key": SECRET},
    )
    driver = WatchedDriver(assignment, "tests.support.spark_driver", temporary)
    try:
        driver.wait("the first epoch", lambda s: s.epoch == 1 and joined(s) == 2)
        before = next_epoch(driver, 2)
        victim = before.snapshot.lanes["pids"]["0"]
        [process] = [one for one in driver.processes(WORKER) if one.pid == victim]
        said_before = len(driver.statuses)
        process.kill()
        driver.wait("another attempt", lambda s: s.snapshot.lanes["pids"]["0"] != victim)
        for number in (1, 2):
            next_epoch(driver, before.epoch + number, attempts_lost=1)
        seen = driver.processes()
        environments = "".join(one.environment() for one in seen)
        driver.send(signal.SIGTERM)
        code = driver.wait_for_its_end()
    finally:
        driver.close()
    yield Life(
        statuses=driver.statuses,
        after_death=driver.statuses[said_before:],
        seen=seen,
        environments=environments,
        killed=victim,
        epoch_of_death=before.epoch,
        code=code,
        left=driver.left(),
        temporary=temporary,
        log=Path(assignment.log).read_text("utf-8"),
    )


def joined(status: Status) -> int:
    return status.snapshot.lanes["counts"].get("joined", 0)


def next_epoch(driver: WatchedDriver, epoch: int, attempts_lost: int = 0) -> Status:
    """Have every task start anew, and wait until all are there."""
    driver.say(Order(do=Do.EPOCH))
    return driver.wait(
        f"epoch {epoch}",
        lambda s: s.epoch >= epoch and joined(s) == TASKS * s.epoch + attempts_lost,
    )


def test_a_driver_starts_runs_and_stops(life: Life) -> None:
    phases = list(dict.fromkeys(status.phase for status in life.statuses))
    assert phases[:2] == [Phase.STARTING, Phase.RUNNING]
    assert phases[-1] is Phase.STOPPED
    troubles = {status.trouble for status in life.statuses if status.trouble}
    assert all("tasks have a slot" in trouble for trouble in troubles), "a slow Spark is told so"


def test_a_driver_names_its_application_and_its_slots(life: Life) -> None:
    running = [status for status in life.statuses if status.phase is Phase.RUNNING][-1]
    assert running.application_id.startswith("local-")
    assert (running.slots, running.tasks) == (TASKS + SPARE_SLOTS, TASKS)


def test_epochs_follow_one_another_and_every_task_comes_to_each(life: Life) -> None:
    numbers = list(dict.fromkeys(status.epoch for status in life.statuses))
    assert numbers == list(range(numbers[-1] + 1))
    last = life.statuses[-1].snapshot.lanes["counts"]
    assert last["joined"] >= TASKS * (numbers[-1] - 1)
    assert last["end_epoch"] >= numbers[-1] - 1


def test_tasks_say_goodbye_before_they_go(life: Life) -> None:
    last = life.statuses[-1].snapshot.lanes["counts"]
    assert last["done"] == last["joined"] - 1, "all but the one that was killed"


def test_a_killed_worker_is_replaced_within_its_epoch(life: Life) -> None:
    after = [
        status for status in life.after_death if status.snapshot.lanes["pids"]["0"] != life.killed
    ]
    assert after[0].epoch == life.epoch_of_death


def test_a_signal_drains_the_driver(life: Life) -> None:
    assert life.code == 0
    assert life.statuses[-1].phase is Phase.STOPPED


def test_nothing_is_left_behind(life: Life) -> None:
    assert life.left == []
    assert list(life.temporary.iterdir()) == []


def test_no_secret_is_seen_from_outside(life: Life) -> None:
    commands = " ".join(process.command for process in life.seen)
    assert JVM in commands
    for place in (commands, life.environments, life.log):
        assert SECRET not in place


def test_spark_runs_from_the_quick_home_with_its_archive(life: Life) -> None:
    home = quick_home({key: value for key, value in os.environ.items() if key != "SPARK_HOME"})
    assert home is not None
    assert f"SPARK_HOME={home.path}\0" in life.environments
    [jvm] = [process for process in life.seen if JVM in process.command]
    assert f"-XX:SharedArchiveFile={home.archive}" in jvm.command


def test_troubles_are_told_and_outlived(importable: None, tmp_path: Path) -> None:
    """A cluster that cannot be reached at first."""
    assignment = Assignment(
        job=replace(rehearsed_job(1), connector=LATE),
        receipts=str(tmp_path / "receipts"),
        log=str(tmp_path / "log"),
        epoch_s=1.0,
    )
    driver = WatchedDriver(assignment, "tests.support.spark_driver", tmp_path)
    try:
        told = driver.wait("the cluster's trouble", lambda s: "not there yet" in s.trouble)
        assert told.trouble.startswith("waiting for cluster source: ")
        assert told.phase is Phase.STARTING
        driver.wait("an end of the trouble", lambda status: not status.trouble)
        driver.wait("Spark", lambda status: status.phase is Phase.RUNNING)
        driver.wait("the next epoch", lambda status: status.epoch > 1)
        driver.send(signal.SIGINT)
        assert driver.wait_for_its_end() == 0
    finally:
        driver.close()


def test_a_partition_shows_no_secret() -> None:
    post = Post(host="here", port=1, secret=b"hidden")
    partition = TaskPartition("A->B", "connector", post, 0, 1)
    assert "hidden" not in repr(partition)
    assert pickle.loads(pickle.dumps(partition)).post == post
