"""A slot runs many tasks, each in a thread; one that fails ends alone; receipts come at the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest

from sparkmirror.copy.control.connection import ControlConnectionLost
from sparkmirror.copy.control.handshake import preferred_protocol
from sparkmirror.copy.control.messages import RequestEpoch, StartTask
from sparkmirror.engine.driver.control.control_server import ControlServer
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, receipts_of, returned_attempts
from sparkmirror.engine.spark.slot import Slot, copy_task_runner, slot_hello
from sparkmirror.errors import MirrorError
from tests.support.copy.control_client import ControlClient
from tests.support.waiting import wait_until

JOBS = ("one", "two")


class ScriptedTasks:
    """Tasks that end when a test says how."""

    def __init__(self) -> None:
        self.started: list[StartTask] = []
        self.ends: dict[str, SimpleQueue[Exception | None]] = {job: SimpleQueue() for job in JOBS}

    def run(self, start: StartTask) -> list[ReceiptRow]:
        self.started.append(start)
        failure = self.ends[start.job].get()
        if failure:
            raise failure
        return [(start.job, start.retry)]

    def attempts(self, job: str) -> int:
        return sum(start.job == job for start in self.started)


class RunningSlot:
    """A slot in a thread."""

    def __init__(self, slot: Slot) -> None:
        self.rows: list[ReceiptRow] = []
        self.error: MirrorError | None = None
        self._slot = slot
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.rows = self._slot.run()
        except MirrorError as error:
            self.error = error

    def wait(self) -> None:
        self._thread.join(timeout=50)
        assert not self._thread.is_alive()


@contextmanager
def serving(conductor: NoopConductor) -> Iterator[ControlServer]:
    """A control server with two jobs of one task each, in an epoch of one slot."""
    server = ControlServer(
        epoch_s=600.0, first_epoch_s=600.0, protocol=preferred_protocol(), bind="127.0.0.1"
    )
    for job in JOBS:
        server.set_job(job, conductor, [0], "A->B")
    server.start()
    try:
        with ControlClient(server.endpoint) as planner:
            planner.send(RequestEpoch(finished_epoch=0))
            wait_until(lambda: server.epoch == 1, "the epoch")
            yield server
    finally:
        server.close()


@pytest.fixture
def conductor() -> NoopConductor:
    return NoopConductor(job_without_partitions(1), hold_tasks=True)


def test_a_task_that_fails_is_started_again_alone_and_receipts_come_at_the_end(
    conductor: NoopConductor,
) -> None:
    tasks = ScriptedTasks()
    with serving(conductor) as server:
        slot = RunningSlot(Slot(server.endpoint, slot_hello(0, 1, 1), tasks.run))
        wait_until(lambda: len(tasks.started) == 2, "both tasks")
        tasks.ends["one"].put(RuntimeError("a bug"))
        wait_until(lambda: tasks.attempts("one") == 2, "the next attempt")
        assert tasks.attempts("two") == 1
        server.end_epoch()
        for job in JOBS:
            tasks.ends[job].put(None)
        slot.wait()
        assert sorted(slot.rows) == [("one", 1), ("two", 0)]
        assert slot.error is None
    assert {start.flow for start in tasks.started} == {"A->B"}


def test_copy_tasks_join_their_conductor_and_are_drained_with_the_epoch(
    conductor: NoopConductor,
) -> None:
    with serving(conductor) as server:
        run = copy_task_runner(server.endpoint, epoch=1)
        slot = RunningSlot(Slot(server.endpoint, slot_hello(0, 1, 1), run))
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks to join")
        server.end_epoch()
        slot.wait()
        wait_until(lambda: conductor.counts["done"] == 2, "both to be done")
    assert (receipts_of(slot.rows), slot.error) == ([], None)
    assert len(returned_attempts(slot.rows)) == 2


def test_a_slot_that_loses_the_driver_waits_for_its_tasks_and_fails(
    conductor: NoopConductor,
) -> None:
    tasks = ScriptedTasks()
    with serving(conductor) as server:
        slot = RunningSlot(Slot(server.endpoint, slot_hello(0, 1, 1), tasks.run))
        wait_until(lambda: len(tasks.started) == 2, "both tasks")
    assert slot.error is None, "its tasks still run"
    for job in JOBS:
        tasks.ends[job].put(None)
    slot.wait()
    assert isinstance(slot.error, ControlConnectionLost)
