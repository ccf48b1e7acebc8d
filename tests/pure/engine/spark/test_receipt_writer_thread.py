"""The receipt writer writes all rows once, and retries rows that it cannot write."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sparkmirror.engine.spark.receipt_rows import ReceiptRow
from sparkmirror.engine.spark.receipt_writer_thread import ReceiptWriter
from sparkmirror.errors import DriverLost
from tests.support.waiting import wait_until


class Disk:
    """Stores rows, unless it is full."""

    def __init__(self) -> None:
        self.rows: list[ReceiptRow] = []
        self.is_full = False
        self.tried = threading.Event()

    def write(self, rows: Sequence[ReceiptRow]) -> None:
        if rows:
            self.tried.set()
        if self.is_full:
            raise DriverLost("the disk is full")
        self.rows += rows


def test_rows_are_written_in_order_and_once() -> None:
    disk = Disk()
    writer = ReceiptWriter(disk.write)
    writer.start()
    for number in range(20):
        writer.add([(number,), (number, "again")])
    wait_until(lambda: writer.pending_rows == 0, "all to be written")
    assert disk.rows == [row for n in range(20) for row in ((n,), (n, "again"))]
    writer.close()


def test_a_failed_write_is_a_problem_and_is_retried() -> None:
    disk = Disk()
    disk.is_full = True
    writer = ReceiptWriter(disk.write)
    writer.start()
    writer.add([(1,)])
    wait_until(lambda: "the disk is full" in writer.problem, "the problem")
    assert "copying goes on" in writer.problem
    assert writer.pending_rows == 1
    disk.is_full = False
    writer.retry_now()
    wait_until(lambda: writer.pending_rows == 0, "the row to be written")
    assert disk.rows == [(1,)]
    wait_until(lambda: writer.problem == "", "the end of the problem")
    writer.close()


def test_nothing_is_written_after_close() -> None:
    disk = Disk()
    writer = ReceiptWriter(disk.write)
    writer.start()
    writer.close()
    writer.add([(1,)])
    assert not disk.tried.wait(0.2)


def test_a_directory_that_cannot_be_written_is_a_problem_before_the_first_receipt() -> None:
    disk = Disk()
    disk.is_full = True
    writer = ReceiptWriter(disk.write)
    writer.start()
    wait_until(lambda: writer.problem.startswith("receipts cannot be written to"), "the problem")
    disk.is_full = False
    writer.retry_now()
    wait_until(lambda: writer.problem == "", "the end of the problem")
    writer.close()
