"""The supervisor starts drivers again when they die, ends them on request, and leaves none."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.backoff import Backoff
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor import driver_supervisor
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_supervisor import MAX_FAILED_STARTS, DriverSupervisor
from sparkmirror.engine.supervisor.idle_driver import IdleDriver
from sparkmirror.engine.supervisor.single_job_supervisor import SingleJobSupervisor
from sparkmirror.errors import DriverLost
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[4]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def job_named(script: str, tasks: int = 1) -> CopyJob:
    return replace(job_without_partitions(tasks), connector=script)


def spec(directory: Path, *scripts: str) -> DriverSpec:
    return DriverSpec(
        jobs=tuple(map(job_named, scripts)),
        receipts=str(directory / "receipts"),
        log=str(directory / "there" / "log"),
    )


@contextmanager
def application(
    directory: Path, *scripts: str, idle_timeout_s: float = 1e9
) -> Iterator[DriverSupervisor]:
    """The supervisor of an application with several jobs."""
    started = DriverSupervisor(
        spec(directory, *scripts),
        module="tests.support.spark.fake_driver",
        backoff=Backoff(initial_s=0.01, max_s=0.01),
        idle_timeout_s=idle_timeout_s,
    )
    started.start()
    try:
        yield started
    finally:
        started.stop(within_s=0.5)


def supervisor(directory: Path, script: str) -> SingleJobSupervisor:
    """A supervisor of a driver that follows a script (see tests.support.spark.fake_driver)."""
    return SingleJobSupervisor(
        spec(directory, script),
        module="tests.support.spark.fake_driver",
        backoff=Backoff(initial_s=0.01, max_s=0.01),
    )


def starts(directory: Path) -> list[int]:
    """The processes that were started."""
    path = directory / "there" / "starts"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def until(statuses: Iterator[DriverStatus], phase: DriverPhase) -> DriverStatus:
    return next(status for status in statuses if status.phase is phase)


def next_driver(statuses: Iterator[DriverStatus]) -> DriverStatus:
    """The first status of the next driver; RESTARTING may be missed in between."""
    return next(one for one in statuses if one.phase is DriverPhase.RUNNING and not one.problem)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_drained_driver_ends_the_statuses(directory: Path) -> None:
    with supervisor(directory, "well") as supervised:
        statuses = supervised.statuses()
        until(statuses, DriverPhase.RUNNING)
        supervised.drain()
        assert [status.phase for status in statuses][-1] is DriverPhase.STOPPED
        assert supervised.failure() is None
    assert len(starts(directory)) == 1
    assert is_gone(starts(directory)[0])


def test_a_driver_that_dies_is_followed_by_another(directory: Path) -> None:
    with supervisor(directory, "dies") as supervised:
        statuses = supervised.statuses()
        again = until(statuses, DriverPhase.RESTARTING)
        assert "ended with code -9" in again.problem
        wait_until(lambda: len(starts(directory)) > MAX_FAILED_STARTS, "more drivers")
    assert all(map(is_gone, starts(directory)))


def test_a_driver_that_never_gets_to_run_is_given_up(directory: Path) -> None:
    with supervisor(directory, "stillborn") as supervised:
        last = list(supervised.statuses())[-1]
        assert last.phase is DriverPhase.FAILED
        assert isinstance(supervised.failure(), DriverLost)
    assert len(starts(directory)) == MAX_FAILED_STARTS


def test_what_no_retry_can_heal_is_not_retried(directory: Path) -> None:
    with supervisor(directory, "refuses") as supervised:
        last = list(supervised.statuses())[-1]
        assert (last.phase, last.problem) == (DriverPhase.FAILED, "the job is invalid")
        assert str(supervised.failure()) == "the job is invalid"
    assert len(starts(directory)) == 1


def test_a_driver_that_does_not_obey_is_killed(directory: Path) -> None:
    with supervisor(directory, "stubborn") as supervised:
        until(supervised.statuses(), DriverPhase.RUNNING)
        began = time.monotonic()
        supervised.stop(within_s=0.5)
        assert time.monotonic() - began < 50
        assert is_gone(starts(directory)[0])


def test_a_drain_has_a_deadline(directory: Path) -> None:
    with supervisor(directory, "stubborn") as supervised:
        statuses = supervised.statuses()
        until(statuses, DriverPhase.RUNNING)
        supervised.drain(within_s=0.5)
        assert DriverPhase.STOPPED not in [status.phase for status in statuses]
        assert is_gone(starts(directory)[0])


def test_a_rate_reaches_this_driver_and_the_next(directory: Path) -> None:
    with supervisor(directory, "well") as supervised:
        statuses = supervised.statuses()
        until(statuses, DriverPhase.RUNNING)
        supervised.set_rate(77)
        assert next(status for status in statuses if status.slots == 77).problem == "rate"
        os.kill(starts(directory)[0], 9)
        assert next_driver(statuses).slots == 77


def test_a_plan_reaches_this_driver_and_the_next(directory: Path) -> None:
    with supervisor(directory, "well") as supervised:
        statuses = supervised.statuses()
        until(statuses, DriverPhase.RUNNING)
        supervised.replan(job_named("well", 3))
        assert next(status for status in statuses if status.tasks == 3).problem == "plan"
        os.kill(starts(directory)[0], 9)
        assert next_driver(statuses).tasks == 3


def test_log_levels_reach_this_driver_and_the_next(directory: Path) -> None:
    levels = json.dumps({"sparkmirror.copy": logging.DEBUG})
    with application(directory, "well") as supervised:
        statuses = supervised.job("source->target.well").statuses()
        until(statuses, DriverPhase.RUNNING)
        supervised.set_log_levels({"sparkmirror.copy": logging.DEBUG})
        assert next(one for one in statuses if one.problem == "log-levels").web_ui == levels
        os.kill(starts(directory)[0], 9)
        assert next_driver(statuses).web_ui == levels


def test_jobs_start_change_and_end_one_by_one_in_one_driver(directory: Path) -> None:
    with application(directory, "well") as supervised:
        first = supervised.job("source->target.well")
        until(first.statuses(), DriverPhase.RUNNING)
        second = supervised.start_job(job_named("another"))
        assert second is not None
        until(second.statuses(), DriverPhase.RUNNING)
        second.replan(job_named("another", 3))
        assert next(status for status in second.statuses() if status.tasks == 3).problem == "plan"
        second.drain()
        assert second.wait(50)
        assert (second.status.phase, second.failure()) == (DriverPhase.STOPPED, None)
        assert (first.is_finished, first.status.tasks) == (False, 1)
        again = supervised.start_job(job_named("another"))
        assert again is not None
        until(again.statuses(), DriverPhase.RUNNING)
    assert len(starts(directory)) == 1


def test_a_job_that_fails_ends_alone(directory: Path) -> None:
    with application(directory, "well", "invalid") as supervised:
        well, invalid = (
            supervised.job("source->target.well"),
            supervised.job("source->target.invalid"),
        )
        assert [status.phase for status in invalid.statuses()][-1] is DriverPhase.FAILED
        assert str(invalid.failure()) == "the job is invalid"
        until(well.statuses(), DriverPhase.RUNNING)
        os.kill(starts(directory)[0], 9)
        wait_until(lambda: len(starts(directory)) == 2, "the next driver")
        next_driver(well.statuses())
        assert well.failure() is None
    assert len(starts(directory)) == 2


def test_every_job_shows_that_the_driver_died_and_goes_on_in_the_next(directory: Path) -> None:
    with application(directory, "well", "another") as supervised:
        jobs = [supervised.job("source->target.well"), supervised.job("source->target.another")]
        seen = [job.statuses() for job in jobs]
        for statuses in seen:
            until(statuses, DriverPhase.RUNNING)
        os.kill(starts(directory)[0], 9)
        for statuses in seen:
            assert next_driver(statuses).tasks == 1
    assert len(starts(directory)) == 2


def test_a_drained_job_does_not_start_in_the_next_driver(directory: Path) -> None:
    with application(directory, "stubborn", "well") as supervised:
        well = supervised.job("source->target.well")
        until(well.statuses(), DriverPhase.RUNNING)
        well.drain()
        os.kill(starts(directory)[0], 9)
        assert well.wait(50)
        assert well.failure() is None
        assert not supervised.job("source->target.stubborn").is_finished


def test_a_driver_that_does_not_end_a_job_is_killed_and_the_others_go_on(directory: Path) -> None:
    with application(directory, "stubborn", "well") as supervised:
        well, stubborn = (
            supervised.job("source->target.well"),
            supervised.job("source->target.stubborn"),
        )
        statuses = stubborn.statuses()
        until(statuses, DriverPhase.RUNNING)
        well.stop(within_s=0.2)
        assert well.is_finished
        wait_until(lambda: len(starts(directory)) == 2, "the next driver")
        assert not stubborn.is_finished


def test_an_application_without_jobs_ends_and_takes_no_other(directory: Path) -> None:
    with application(directory, "well", idle_timeout_s=0.1) as supervised:
        well = supervised.job("source->target.well")
        until(well.statuses(), DriverPhase.RUNNING)
        well.drain()
        supervised.wait(50)
        assert is_gone(starts(directory)[0])
        assert supervised.start_job(job_named("well")) is None


@pytest.mark.parametrize("library", ["pyspark", "kafka"])
def test_supervising_needs_neither_spark_nor_a_client(library: str) -> None:
    """A command and a driver are there at once, whatever else must be loaded later."""
    code = (
        f"import sys, sparkmirror.engine.supervisor.driver_supervisor as s;"
        f" sys.exit('{library}' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_supervisor_can_be_ended_before_its_driver_runs(directory: Path) -> None:
    supervised = supervisor(directory, "mute")
    supervised.start()
    supervised.stop(within_s=0.2)
    assert list(supervised.statuses()) == []
    assert all(map(is_gone, starts(directory)))


def test_a_driver_without_a_status_is_a_problem_before_it_is_killed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_supervisor, "SILENT_AT_START_S", 0.2)
    with supervisor(directory, "mute") as supervised:
        wait_until(lambda: "has sent no status" in supervised.status.problem, "the problem")
        assert supervised.status.phase is DriverPhase.STARTING
        supervised.stop(within_s=0.1)  # it reads no command


def test_a_silent_driver_that_was_running_is_a_problem(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_supervisor, "SILENT_S", 0.2)
    with supervisor(directory, "well") as supervised:
        until(supervised.statuses(), DriverPhase.RUNNING)
        wait_until(lambda: "has sent no status" in supervised.status.problem, "the problem")
        assert supervised.status.phase is DriverPhase.RUNNING


def test_a_driver_that_cannot_be_started_is_given_up_with_the_cause(directory: Path) -> None:
    (directory / "file").write_text("")
    with supervisor(directory / "file" / "logs", "well") as supervised:
        assert list(supervised.statuses())[-1].phase is DriverPhase.FAILED
        assert "Not a directory" in str(supervised.failure())


def test_a_driver_that_was_started_before_gets_the_spec_and_what_was_set_since(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with IdleDriver("tests.support.spark.fake_driver") as idle:
        monkeypatch.setenv("SET_LATER", "yes")
        started = DriverSupervisor(
            spec(directory, "dies"),
            module="tests.support.spark.fake_driver",
            backoff=Backoff(initial_s=0.01, max_s=0.01),
        )
        started.use(idle)
        started.start()
        try:
            wait_until(lambda: len(starts(directory)) > 1, "the next driver")
        finally:
            started.stop(within_s=0.5)
        assert starts(directory)[0] == idle.process.pid
        assert idle.process.new_variables()["SET_LATER"] == "yes"
        assert idle.process.has_ended


def test_a_driver_that_no_application_uses_ends_with_its_directory(directory: Path) -> None:
    with IdleDriver("tests.support.spark.fake_driver") as idle:
        process = Path(f"/proc/{idle.process.pid}")
        assert process.exists()
        place = (process / "cwd").readlink()
    assert not process.exists()
    assert not place.exists()
    idle.close()
