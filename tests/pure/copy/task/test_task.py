"""How often an idle task wakes."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from sparkmirror.copy.control.connection import ControlConnection
from sparkmirror.copy.control.messages import ControlMessage, Drain, ProgressReport, ReportAck
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.task import CopyTask
from tests.support.copy.control_client import handshake_keys
from tests.support.waiting import wait_until

REPORT_INTERVAL_S = 0.2


class CountedTask(CopyTask):
    """Counts its turns."""

    turns = housekeeping_runs = acknowledged = 0

    def run_once(self) -> None:
        self.turns += 1
        super().run_once()

    def _on_message(self, message: ControlMessage) -> None:
        self.acknowledged += isinstance(message, ReportAck)
        super()._on_message(message)

    def _run_housekeeping(self, now: float) -> None:
        self.housekeeping_runs += 1
        super()._run_housekeeping(now)


class TaskWithDriver:
    """A task without leases, and its driver, which acknowledges every report."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        keys = handshake_keys()
        cluster = {"bootstrap.servers": "127.0.0.1:1"}
        settings = CopySettings(source=cluster, target=cluster, report_interval_s=REPORT_INTERVAL_S)
        connection = ControlConnection(ours, lambda _: None, keys.task_ciphers())
        self.task = CountedTask(connection, settings)
        self.task.loop.register(connection, lambda error: None)
        self.driver = ControlConnection(theirs, self._on_message, keys.driver_ciphers())
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run_driver, daemon=True)
        self._thread.start()

    def _run_driver(self) -> None:
        while not self._is_closing.is_set():
            if select.select([self.driver], [], [], 0.05)[0]:
                self.driver.on_readable()

    def _on_message(self, message: ControlMessage) -> None:
        assert isinstance(message, ProgressReport)
        self.driver.send(ReportAck())

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join()
        self.task.close()
        self.driver.close()


@pytest.fixture
def idle() -> Iterator[TaskWithDriver]:
    made = TaskWithDriver()
    yield made
    made.close()


def run_for_reports(idle: TaskWithDriver, count: int) -> None:
    """Run turns until so many more reports were acknowledged."""
    wanted = idle.task.acknowledged + count

    def is_acknowledged() -> bool:
        idle.task.run_once()
        return idle.task.acknowledged >= wanted

    wait_until(is_acknowledged, "the reports")


def test_an_idle_task_wakes_for_the_renewal_and_the_acknowledgement_only(
    idle: TaskWithDriver,
) -> None:
    run_for_reports(idle, 1)
    turns, housekeeping_runs = idle.task.turns, idle.task.housekeeping_runs
    begun = time.monotonic()
    run_for_reports(idle, 4)
    assert time.monotonic() - begun > 4 * REPORT_INTERVAL_S
    assert idle.task.turns - turns <= 2 * 4
    assert idle.task.housekeeping_runs - housekeeping_runs <= 4
    assert idle.task.reporter.lease_renewed_at > begun


def test_a_command_that_arrives_with_an_acknowledgement_is_carried_out_at_once(
    idle: TaskWithDriver,
) -> None:
    run_for_reports(idle, 1)
    idle.driver.send(Drain())
    idle.driver.send(ReportAck())

    def is_drained() -> bool:
        idle.task.run_once()
        return idle.task.leases.is_drained

    wait_until(is_drained, "the drain")
    housekeeping_runs = idle.task.housekeeping_runs
    idle.task.run_once()
    assert idle.task.housekeeping_runs == housekeeping_runs + 1
