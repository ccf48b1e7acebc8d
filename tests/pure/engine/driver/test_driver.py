"""The driver with a streaming query that needs no Spark: what it publishes of Spark's troubles."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.task.transform.converter_factory import NewEvaluator
from sparkmirror.engine.driver import driver, spark_application
from sparkmirror.engine.driver.driver import EXIT_FAILED, Driver, status_pause_s
from sparkmirror.engine.driver.spark_application import SparkApplication
from sparkmirror.engine.driver.spark_process import PreparedProcess
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand
from sparkmirror.errors import DriverLost
from tests.support.reserved_port import reserved_port
from tests.support.waiting import wait_until

RECEIPTS = "receipts cannot be written to /full: no space; copying goes on"
JVM_DIED = "the streaming query failed: its JVM has died"


class FakeQuery:
    """A streaming query that runs until it is stopped or the test lets it fail."""

    jvm_pid = 0
    application_id = "app-1"
    web_ui = ""
    unwritten_receipts = 0

    def __init__(self) -> None:
        self.problem = ""
        self.error: Exception | None = None
        self._is_stopped = False

    def slots(self) -> int:
        return 2

    def conf_value(self, key: str) -> str:
        return "127.0.0.1"

    def load_stream(self, options: dict[str, str]) -> None:
        """No-op."""

    def start(self, *_: object) -> None:
        """No-op."""

    def await_termination(self, seconds: int) -> bool:
        time.sleep(0.01)
        if self.error is not None:
            raise self.error
        return self._is_stopped

    def skip_backoff(self) -> None:
        """No-op."""

    def stop_stream(self) -> None:
        self._is_stopped = True

    def close(self) -> None:
        """No-op."""


class RecordingConductor(NoopConductor):
    """Records until when the worker is a member of its group."""

    valid_until = 0.0

    def renew_membership(self, valid_until: float, *, is_alone: bool) -> None:
        self.valid_until = valid_until


class DriverHarness:
    """A driver in a thread, and the statuses that it has published."""

    def __init__(self, master: str, directory: Path) -> None:
        self.query = FakeQuery()
        self.conductors: list[RecordingConductor] = []
        self.may_publish, self.is_publishing = threading.Event(), threading.Event()
        self.may_publish.set()
        self.own: list[DriverStatus] = []
        """Those of the driver itself."""
        self.jobs: list[DriverStatus] = []
        self.code: int | None = None
        spec = DriverSpec(
            jobs=(job_without_partitions(3),),
            receipts=str(directory / "receipts"),
            log=str(directory / "log"),
            master=master,
        )
        self.driver = Driver(spec, self._create_conductor, self._publish)
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def wait_for_job(self, reason: str, condition: Callable[[DriverStatus], bool]) -> None:
        """Wait for a job whose latest status meets a condition."""
        wait_until(lambda: bool(self.jobs) and condition(self.jobs[-1]), reason)

    def wait(self) -> int | None:
        """Wait for the end; returns the exit code."""
        self._thread.join(timeout=50)
        return self.code

    def stop(self) -> None:
        self.may_publish.set()
        self.driver.submit(DriverCommand(action=DriverAction.STOP))
        self.wait()

    def _create_conductor(self, job: CopyJob, new_evaluator: NewEvaluator) -> RecordingConductor:
        del new_evaluator
        self.conductors.append(RecordingConductor(job))
        return self.conductors[-1]

    def _publish(self, status: DriverStatus) -> None:
        if not self.may_publish.is_set():
            self.is_publishing.set()
            self.may_publish.wait(50)
        (self.jobs if status.job else self.own).append(status)

    def _run(self) -> None:
        self.code = self.driver.run()


@pytest.fixture
def master() -> Iterator[socket.socket]:
    """A Spark master that accepts connections."""
    with reserved_port() as port, socket.create_server(("127.0.0.1", port)) as listener:
        yield listener


@pytest.fixture
def harness(
    master: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DriverHarness]:
    made = DriverHarness(f"spark://127.0.0.1:{master.getsockname()[1]}", tmp_path)
    monkeypatch.setattr(driver, "STATUS_INTERVAL_S", 0.05)
    monkeypatch.setattr(spark_application, "prepare_process", lambda *_: PreparedProcess({}, None))
    monkeypatch.setattr(spark_application, "MirrorStreamingQuery", lambda *_: made.query)
    made.start()
    yield made
    made.stop()


def is_running(status: DriverStatus) -> bool:
    return status.phase is DriverPhase.RUNNING and not status.problem


def test_a_job_has_the_problem_of_the_receipts_until_they_are_written(
    harness: DriverHarness,
) -> None:
    harness.wait_for_job("the start", is_running)
    harness.query.problem = RECEIPTS
    harness.wait_for_job("the problem", lambda one: one.problem == RECEIPTS)
    assert harness.jobs[-1].phase is DriverPhase.RUNNING
    harness.query.problem = ""
    harness.wait_for_job("the end of the problem", is_running)


def test_a_job_says_that_no_task_has_a_slot_and_that_the_master_is_gone(
    harness: DriverHarness, master: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.wait_for_job("the start", is_running)
    monkeypatch.setattr(SparkApplication, "lacks_slots", True)
    harness.wait_for_job(
        "the problem", lambda one: one.problem.startswith("none of 3 tasks have a slot in Spark")
    )
    assert "Spark master" not in harness.jobs[-1].problem
    master.close()
    harness.wait_for_job("the cause", lambda one: "; Spark master spark://" in one.problem)
    monkeypatch.setattr(SparkApplication, "lacks_slots", False)
    harness.wait_for_job("the end of the problem", is_running)


def test_a_jvm_that_died_ends_the_driver_so_that_another_one_is_started(
    harness: DriverHarness,
) -> None:
    harness.wait_for_job("the start", is_running)
    harness.query.error = DriverLost(JVM_DIED)
    assert harness.wait() == EXIT_FAILED
    last = harness.own[-1]
    assert (last.phase, last.problem, last.is_retriable) == (DriverPhase.FAILED, JVM_DIED, True)
    assert (harness.jobs[-1].phase, harness.jobs[-1].problem) == (DriverPhase.RESTARTING, JVM_DIED)


def test_a_membership_is_renewed_while_statuses_are_written(harness: DriverHarness) -> None:
    harness.wait_for_job("the start", is_running)
    harness.may_publish.clear()
    assert harness.is_publishing.wait(50)
    harness.driver.submit(
        DriverCommand(
            action=DriverAction.RENEW_MEMBERSHIP,
            job_names=(job_without_partitions(3).name,),
            valid_until=7.0,
        )
    )
    assert [one.valid_until for one in harness.conductors] == [7.0]


def test_statuses_come_sooner_while_partitions_are_handed_over() -> None:
    pauses = [status_pause_s(written_s, is_handing_over=False) for written_s in (0.0, 0.5, 9.0)]
    assert pauses == [1.0, 2.0, 3.0]
    pauses = [status_pause_s(written_s, is_handing_over=True) for written_s in (0.0, 0.1, 9.0)]
    assert pauses == [0.2, 0.4, 1.0]
