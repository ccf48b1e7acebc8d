"""A log level set over REST reaches the drivers, where the copy code logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.connect.herder.log_levels import LogLevels
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.worker.spark.driver_log_levels import DriverLogLevels

ROOT = Path(__file__).parents[4]
JOB = replace(job_without_partitions(1), connector="well")
MIRROR_LOGGER = "org.apache.kafka.connect.mirror"


def create_driver(directory: Path) -> DriverSupervisor:
    """A driver that repeats its log levels (see tests.support.spark.fake_driver)."""
    spec = DriverSpec(
        jobs=(JOB,),
        receipts=str(directory / "receipts"),
        log=str(directory / "log"),
    )
    return DriverSupervisor(spec, module="tests.support.spark.fake_driver")


@contextmanager
def running(driver: DriverSupervisor) -> Iterator[Iterator[DriverStatus]]:
    """Run a driver; yields the statuses of its job."""
    driver.start()
    try:
        yield driver.job(JOB.name).statuses()
    finally:
        driver.stop()


def test_a_level_reaches_running_drivers_and_drivers_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    levels = LogLevels(logging.Manager(logging.RootLogger(logging.INFO)))
    drivers = DriverLogLevels()
    levels.add_listener(drivers.set_levels)
    first, second = create_driver(tmp_path / "first"), create_driver(tmp_path / "second")
    drivers.add_driver(first)
    with running(first) as statuses:
        assert next(one for one in statuses if one.phase is DriverPhase.RUNNING).web_ui == "{}"
        levels.set_level(MIRROR_LOGGER, "DEBUG")
        changed = next(one for one in statuses if one.problem == "log-levels")
        assert json.loads(changed.web_ui)["sparkmirror.copy"] == logging.DEBUG
    drivers.add_driver(second)
    with running(second) as statuses:
        started = next(one for one in statuses if one.phase is DriverPhase.RUNNING)
        assert json.loads(started.web_ui)["sparkmirror.copy"] == logging.DEBUG
