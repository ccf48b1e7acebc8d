"""The driver process without Spark: it waits for a master that does not answer, until a signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase
from tests.support.spark.observed_driver import ObservedDriver

MASTER = "spark://127.0.0.1:1"


@pytest.fixture
def waiting_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObservedDriver]:
    """A driver that has not started Spark: nothing listens at its master."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    spec = DriverSpec(
        jobs=(job_without_partitions(1),),
        receipts=str(tmp_path / "receipts"),
        log=str(tmp_path / "log"),
        master=MASTER,
    )
    driver = ObservedDriver(spec, "sparkmirror.engine.driver.noop_driver_main", temporary)
    yield driver
    driver.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_driver_names_a_master_that_does_not_answer_and_drains_at_a_signal(
    waiting_driver: ObservedDriver, number: signal.Signals
) -> None:
    text = f"Spark master {MASTER} does not answer: connection refused; check spark.master"
    waiting = waiting_driver.wait_for_status("the problem", lambda one: text in one.problem)
    assert waiting.phase is DriverPhase.STARTING
    waiting_driver.send_signal(number)
    assert waiting_driver.wait_for_exit() == 0, waiting_driver.describe()
    assert waiting_driver.statuses[-1].phase is DriverPhase.STOPPED
