"""A slot runs many tasks, each in a thread; one that fails ends alone; receipts come at the end."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest

from sparkmirror.copy.control.connection import ControlConnectionLost
from sparkmirror.copy.control.handshake import preferred_protocol
from sparkmirror.copy.control.messages import (
    ControlMessage,
    Drain,
    EndEpoch,
    EpochAssignment,
    Hello,
    RequestEpoch,
    StartTask,
    Welcome,
)
from sparkmirror.copy.task.driver_messages import WELCOME_TIMEOUT_S
from sparkmirror.engine.driver.control.control_server import ControlServer
from sparkmirror.engine.driver.slots import slot_scheduler
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from sparkmirror.engine.spark.kept_slots import KeptSlots
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, receipts_of, returned_attempts
from sparkmirror.engine.spark.slot import ReturnRows, RunTask, copy_task_runner, slot_hello
from sparkmirror.errors import MirrorError
from tests.support.copy.control_client import ControlClient
from tests.support.waiting import wait_until

JOBS = ("one", "two")
SPARK_ATTEMPTS = itertools.count(1)
"""Spark never uses the number of an attempt twice."""


class ScriptedTasks:
    """Tasks that end when a test says how."""

    def __init__(self) -> None:
        self.started: list[StartTask] = []
        self.ends: dict[str, SimpleQueue[Exception | None]] = {job: SimpleQueue() for job in JOBS}

    def run(self, start: StartTask, epoch: int, return_rows: ReturnRows) -> None:
        self.started.append(start)
        failure = self.ends[start.job].get()
        if failure:
            raise failure
        return_rows(epoch, [(start.job, start.retry)])

    def attempts(self, job: str) -> int:
        return sum(start.job == job for start in self.started)


class RunningSlot:
    """A Spark task with its slot, in a thread."""

    def __init__(
        self,
        server: ControlServer,
        run_task: RunTask,
        kept_slots: KeptSlots | None = None,
        epoch: int = 1,
    ) -> None:
        self.rows: list[ReceiptRow] = []
        self._kept_slots = kept_slots or KeptSlots()
        self._arguments = (server.endpoint, slot_hello(0, next(SPARK_ATTEMPTS), epoch), run_task)
        self.error: MirrorError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.rows = self._kept_slots.run(*self._arguments)
        except MirrorError as error:
            self.error = error

    def wait(self) -> None:
        self._thread.join(timeout=50)
        assert not self._thread.is_alive()


@contextmanager
def serving(conductor: NoopConductor, *, keeps_slots: bool = False) -> Iterator[ControlServer]:
    """A control server with two jobs of one task each, in an epoch of one slot."""
    server = ControlServer(
        epoch_s=600.0,
        first_epoch_s=600.0,
        protocol=preferred_protocol(),
        bind="127.0.0.1",
        keeps_slots=keeps_slots,
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
        slot = RunningSlot(server, tasks.run)
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
        slot = RunningSlot(server, copy_task_runner(server.endpoint))
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks to join")
        server.end_epoch()
        slot.wait()
        wait_until(lambda: conductor.counts["done"] == 2, "both to be done")
    assert (receipts_of(slot.rows), slot.error) == ([], None)
    assert len(returned_attempts(slot.rows)) == 2


def test_a_task_that_is_drained_with_the_end_of_its_epoch_returns_rows_of_both_epochs() -> None:
    class EndingConductor(NoopConductor):
        def on_task_joined(self, hello: Hello, send: Callable[[ControlMessage], None]) -> None:
            send(Welcome(settings=self.job.settings.to_json()))
            send(EndEpoch(epoch=1))
            send(Drain())

    returned: list[tuple[int, list[int]]] = []
    with serving(EndingConductor(job_without_partitions(1))) as server:
        start = StartTask(job="one", flow="A->B", task=0, attempt=1, retry=0)
        run = copy_task_runner(server.endpoint)
        run(start, 1, lambda epoch, rows: returned.append((epoch, epochs_of(rows))))
    assert returned == [(1, [1]), (2, [2])]


def test_a_slot_that_loses_the_driver_waits_for_its_tasks_and_fails(
    conductor: NoopConductor,
) -> None:
    tasks = ScriptedTasks()
    with serving(conductor) as server:
        slot = RunningSlot(server, tasks.run)
        wait_until(lambda: len(tasks.started) == 2, "both tasks")
    assert slot.error is None, "its tasks still run"
    for job in JOBS:
        tasks.ends[job].put(None)
    slot.wait()
    assert isinstance(slot.error, ControlConnectionLost)


def begin_epoch(server: ControlServer, number: int) -> None:
    """Request an epoch, as Spark's planner does."""
    with ControlClient(server.endpoint) as planner:
        planner.send(RequestEpoch(finished_epoch=number - 1))
        wait_until(lambda: server.epoch == number, "the epoch")


def epochs_of(rows: list[ReceiptRow]) -> list[int]:
    """The epochs of the attempts that have returned rows."""
    return sorted(one.epoch for one in returned_attempts(rows))


def test_tasks_copy_on_when_the_next_spark_task_runs_in_the_same_process(
    conductor: NoopConductor,
) -> None:
    with serving(conductor, keeps_slots=True) as server:
        kept_slots, run = KeptSlots(), copy_task_runner(server.endpoint)
        slot = RunningSlot(server, run, kept_slots)
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks")
        for epoch in (1, 2, 3):
            if epoch > 1:
                wait_until(lambda: server.is_ready, "the slot to be adopted")
            server.end_epoch()
            slot.wait()
            assert (slot.error, epochs_of(slot.rows)) == (None, [epoch, epoch])
            begin_epoch(server, epoch + 1)
            slot = RunningSlot(server, run, kept_slots, epoch + 1)
        wait_until(lambda: server.is_ready, "the last slot")
        server.stop_new_epochs()
        slot.wait()
        assert (slot.error, epochs_of(slot.rows)) == (None, [4, 4])
    assert (conductor.counts["joined"], conductor.counts["epoch-ended"]) == (2, 6)
    assert conductor.counts["done"] == 2


def test_tasks_move_when_the_next_spark_task_runs_in_another_process(
    conductor: NoopConductor,
) -> None:
    with serving(conductor, keeps_slots=True) as server:
        run = copy_task_runner(server.endpoint)
        first = RunningSlot(server, run, KeptSlots())
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks to join")
        server.end_epoch()
        first.wait()
        assert conductor.counts["done"] == 0, "both copy on"
        begin_epoch(server, 2)
        second = RunningSlot(server, run, KeptSlots(), 2)
        wait_until(lambda: conductor.counts["joined"] == 4, "both tasks to join again")
        assert conductor.counts["done"] == 2, "they were drained before"
        server.stop_new_epochs()
        second.wait()
        assert epochs_of(second.rows) == [2, 2]


def test_another_attempt_of_an_ended_epoch_leaves_the_kept_slot_alone(
    conductor: NoopConductor,
) -> None:
    with serving(conductor, keeps_slots=True) as server:
        kept_slots, run = KeptSlots(), copy_task_runner(server.endpoint)
        first = RunningSlot(server, run, kept_slots)
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks to join")
        server.end_epoch()
        first.wait()
        again = RunningSlot(server, run, kept_slots)
        again.wait()
        assert (again.rows, again.error) == ([], None)
        begin_epoch(server, 2)
        second = RunningSlot(server, run, kept_slots, 2)
        wait_until(lambda: server.is_ready, "the slot to be adopted")
        server.stop_new_epochs()
        second.wait()
        assert epochs_of(second.rows) == [2, 2]
    assert conductor.counts["joined"] == 2


def test_receipts_of_tasks_that_were_drained_after_the_last_epoch_are_returned(
    conductor: NoopConductor,
) -> None:
    with (
        serving(conductor, keeps_slots=True) as server,
        ControlClient(server.endpoint) as planner,
    ):
        kept_slots, run = KeptSlots(), copy_task_runner(server.endpoint)
        first = RunningSlot(server, run, kept_slots)
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks to join")
        server.end_epoch()
        first.wait()
        conductor.drain()
        wait_until(conductor.is_drained, "both tasks to be drained")
        server.stop_new_epochs()
        planner.send(RequestEpoch(finished_epoch=1))
        assert planner.receive(EpochAssignment).number == 2
        assert not server.is_idle
        second = RunningSlot(server, run, kept_slots, 2)
        second.wait()
        assert (second.error, epochs_of(second.rows)) == (None, [2, 2])
        planner.send(RequestEpoch(finished_epoch=2))
        assert planner.receive(EpochAssignment).number == 2, "none follows"
        wait_until(lambda: server.is_idle, "the server to be idle")
    assert conductor.counts["joined"] == 2


def test_a_task_without_a_welcome_does_not_hold_the_change_of_epochs(
    conductor: NoopConductor,
) -> None:
    class BusyConductor(NoopConductor):
        def on_task_joined(self, hello: Hello, send: Callable[[ControlMessage], None]) -> None:
            self.counts["joined"] += 1

    busy = BusyConductor(job_without_partitions(1))
    with serving(conductor, keeps_slots=True) as server:
        server.set_job("two", busy, [0], "A->B")
        kept_slots, run = KeptSlots(), copy_task_runner(server.endpoint)
        slot = RunningSlot(server, run, kept_slots)
        wait_until(lambda: conductor.counts["joined"] + busy.counts["joined"] == 2, "both tasks")
        for epoch in (1, 2):
            ended = time.monotonic()
            server.end_epoch()
            slot.wait()
            assert time.monotonic() - ended < WELCOME_TIMEOUT_S / 3
            assert (slot.error, epochs_of(slot.rows)) == (None, [epoch, epoch])
            begin_epoch(server, epoch + 1)
            slot = RunningSlot(server, run, kept_slots, epoch + 1)
            wait_until(lambda: server.is_ready, "the slot to be adopted")
    assert (conductor.counts["joined"], busy.counts["joined"]) == (1, 1)
    assert (conductor.counts["epoch-ended"], busy.counts["epoch-ended"]) == (2, 2)


def test_an_epoch_that_is_to_end_before_the_slot_is_adopted_waits_for_it(
    conductor: NoopConductor,
) -> None:
    with serving(conductor, keeps_slots=True) as server:
        kept_slots, run = KeptSlots(), copy_task_runner(server.endpoint)
        first = RunningSlot(server, run, kept_slots)
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks to join")
        server.end_epoch()
        first.wait()
        begin_epoch(server, 2)
        server.end_epoch()
        second = RunningSlot(server, run, kept_slots, 2)
        second.wait()
        assert (second.error, epochs_of(second.rows)) == (None, [2, 2])
        assert (conductor.counts["joined"], conductor.counts["done"]) == (2, 0)


def test_a_slot_that_was_released_ends_and_another_one_is_opened(
    conductor: NoopConductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_scheduler, "KEPT_SLOT_TIMEOUT_S", 0.1)
    with serving(conductor, keeps_slots=True) as server:
        kept_slots, run = KeptSlots(), copy_task_runner(server.endpoint)
        first = RunningSlot(server, run, kept_slots)
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks to join")
        server.end_epoch()
        first.wait()
        begin_epoch(server, 2)
        wait_until(lambda: conductor.counts["done"] == 2, "both tasks to be drained")
        second = RunningSlot(server, run, kept_slots, 2)
        wait_until(lambda: conductor.counts["joined"] == 4, "both tasks to join again")
        server.stop_new_epochs()
        second.wait()
        assert second.error is None
        assert set(epochs_of(second.rows)) == {2}
    assert conductor.counts["done"] == 4


@pytest.mark.parametrize(("epoch", "returned"), [(2, [2, 2, 2, 2]), (3, [3, 3])])
def test_receipts_of_a_released_slot_that_has_ended_are_returned_in_their_epoch_only(
    conductor: NoopConductor, monkeypatch: pytest.MonkeyPatch, epoch: int, returned: list[int]
) -> None:
    """Later the driver has written them."""
    monkeypatch.setattr(slot_scheduler, "KEPT_SLOT_TIMEOUT_S", 0.1)
    with serving(conductor, keeps_slots=True) as server:
        kept_slots, run = KeptSlots(), copy_task_runner(server.endpoint)
        first = RunningSlot(server, run, kept_slots)
        wait_until(lambda: conductor.counts["joined"] == 2, "both tasks to join")
        server.end_epoch()
        first.wait()
        wait_until(lambda: not slot_threads(), "the slot to end")
        for number in range(2, epoch + 1):
            begin_epoch(server, number)
        second = RunningSlot(server, run, kept_slots, epoch)
        wait_until(lambda: conductor.counts["joined"] == 4, "both tasks to join again")
        server.stop_new_epochs()
        second.wait()
        assert second.error is None
        assert epochs_of(second.rows) == returned


def slot_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "slot"]
