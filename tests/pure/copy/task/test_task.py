"""How often an idle task wakes, and when a drained one ends."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.messages import (
    ControlMessage,
    Drain,
    EndEpoch,
    EpochEnded,
    EpochEndedAck,
    ProgressReport,
    ReportAck,
    TaskDone,
)
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task import task as task_module
from sparkmirror.copy.task.fetch_wait import FetchWait
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.receipts.receipt_collector import ReceiptCollector
from sparkmirror.copy.task.task import CopyTask
from tests.support.copy.control_client import handshake_keys
from tests.support.copy.pending_batches import make_batch, make_lease, make_partition
from tests.support.copy.receiver import Receiver
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
        self.received: list[ControlMessage] = []
        self.ended: list[tuple[int, ReceiptCollector]] = []
        """The epochs whose receipts the task has returned."""
        self.answered = 0
        """How many ends of epochs the driver has answered."""
        ours, theirs = socket.socketpair()
        keys = handshake_keys()
        cluster = {"bootstrap.servers": "127.0.0.1:1"}
        settings = CopySettings(source=cluster, target=cluster, report_interval_s=REPORT_INTERVAL_S)
        connection = ControlConnection(ours, lambda _: None, keys.task_ciphers())
        self.task = CountedTask(
            connection, settings, on_epoch_ended=lambda *end: self.ended.append(end)
        )
        self._driver = ControlConnection(theirs, self._on_message, keys.driver_ciphers())
        self._driver_lock = threading.RLock()
        """The test sends from its own thread, and a connection belongs to one thread at a time."""
        self.answers_ends = threading.Event()
        """Whether the driver answers the ends of epochs."""
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run_driver, daemon=True)
        self._thread.start()

    def _run_driver(self) -> None:
        while not self._is_closing.is_set():
            if select.select([self._driver], [], [], 0.05)[0]:
                try:
                    with self._driver_lock:
                        self._driver.on_readable()
                except ControlConnectionLost:
                    return  # the task has ended
            if self.answers_ends.is_set() and self.count(EpochEnded) > self.answered:
                self.send(EpochEndedAck(epoch=4))
                self.answered += 1

    def _on_message(self, message: ControlMessage) -> None:
        self.received.append(message)
        if isinstance(message, ProgressReport):
            self.send(ReportAck())

    def send(self, *messages: ControlMessage) -> None:
        """Send messages to the task, one right after the other."""
        with self._driver_lock:
            for message in messages:
                self._driver.send(message)

    def count(self, kind: type[ControlMessage]) -> int:
        """How many messages of a type the driver has received."""
        return sum(isinstance(message, kind) for message in self.received)

    def close_driver(self) -> None:
        self._is_closing.set()
        self._thread.join()
        self._driver.close()


@pytest.fixture
def idle() -> Iterator[TaskWithDriver]:
    made = TaskWithDriver()
    made.task.loop.register(made.task.connection, lambda error: None)
    yield made
    made.close_driver()
    made.task.close()


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
    idle.send(Drain(), ReportAck())

    def is_drained() -> bool:
        idle.task.run_once()
        return idle.task.leases.is_drained

    wait_until(is_drained, "the drain")
    housekeeping_runs = idle.task.housekeeping_runs
    idle.task.run_once()
    assert idle.task.housekeeping_runs == housekeeping_runs + 1


def let_records_collect(task: CopyTask) -> None:
    """Have the task wait for a broker's answer with more records."""
    task.run_once()
    task.fetcher._waits[1] = FetchWait(is_collecting=True, is_fetch_open=True)


def test_leases_are_renewed_while_records_collect(idle: TaskWithDriver) -> None:
    let_records_collect(idle.task)
    begun = time.monotonic()
    run_for_reports(idle, 3)
    assert idle.task.fetcher.lets_records_collect(time.monotonic())
    assert idle.task.reporter.lease_renewed_at > begun


def test_an_answer_of_the_target_waits_while_records_collect_unless_batches_wait_for_it(
    idle: TaskWithDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_module, "COLLECTING_WAIT_S", 50.0)
    idle.task.reporter.interval_s = 100.0
    run_for_reports(idle, 1)
    let_records_collect(idle.task)
    target = Receiver()
    idle.task.loop.register(target, lambda error: None, is_urgent=False)
    target.sender.send(b"!")
    woken: list[bool] = []
    waker = threading.Timer(
        0.05, lambda: idle.task.loop.call_soon(lambda: woken.append(target.received > 0))
    )
    waker.start()
    begun = time.monotonic()
    while not woken:
        idle.task.run_once()
    assert woken == [False], "nothing was received before the call of the other thread"
    assert target.received == 1
    waker.join()
    queue = PartitionQueue(make_lease())
    queue.enqueue(make_batch(100, 2))
    idle.task.sender.mark_ready(make_partition(queue))
    target.sender.send(b"!")
    idle.task.run_once()
    assert time.monotonic() - begun < 25
    assert target.received == 2
    idle.task.loop.unregister(target)
    target.close()


def test_a_drained_task_ends_after_the_answer_to_the_end_of_its_epoch() -> None:
    """Else it would return what it copied in the next epoch as receipts of this one."""
    draining = TaskWithDriver()
    before = draining.task.reporter.receipts
    draining.send(EndEpoch(epoch=4), Drain())
    thread = threading.Thread(target=draining.task.run, daemon=True)
    thread.start()
    wait_until(lambda: draining.count(EpochEnded) == 1, "the end of the epoch")
    wait_until(lambda: draining.task.leases.is_drained, "the drain")
    time.sleep(2 * REPORT_INTERVAL_S)
    assert draining.count(TaskDone) == 0
    assert draining.ended == []
    draining.answers_ends.set()
    thread.join(timeout=20)
    assert not thread.is_alive()
    draining.close_driver()
    assert draining.count(TaskDone) == 1
    assert draining.ended == [(4, before)]
    assert draining.task.reporter.receipts is not before, "the rest belongs to epoch 5"
