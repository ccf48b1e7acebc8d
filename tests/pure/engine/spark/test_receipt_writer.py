"""Landing: everything that comes is written once, whatever goes wrong meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sparkmirror.engine.spark.receipt_rows import ReceiptRow
from sparkmirror.engine.spark.receipt_writer import ReceiptWriter
from sparkmirror.errors import DriverLost
from tests.support.waiting import wait_until


class Disk:
    """Keeps rows, unless it is full."""

    def __init__(self) -> None:
        self.kept: list[ReceiptRow] = []
        self.is_full = False
        self.tried = threading.Event()

    def write(self, rows: Sequence[ReceiptRow]) -> None:
        self.tried.set()
        if self.is_full:
            raise DriverLost("the disk is full")
        self.kept += rows


def test_rows_are_written_in_order_and_once() -> None:
    disk = Disk()
    landing = ReceiptWriter(disk.write)
    landing.start()
    for number in range(20):
        landing.add([(number,), (number, "again")])
    wait_until(lambda: landing.pending_rows == 0, "all to be written")
    assert disk.kept == [row for n in range(20) for row in ((n,), (n, "again"))]
    landing.close()


def test_what_cannot_be_written_is_told_and_tried_again() -> None:
    disk = Disk()
    disk.is_full = True
    landing = ReceiptWriter(disk.write)
    landing.start()
    landing.add([(1,)])
    wait_until(lambda: "the disk is full" in landing.problem, "the trouble to be told")
    assert landing.pending_rows == 1
    disk.is_full = False
    landing.retry_now()
    wait_until(lambda: landing.pending_rows == 0, "it to be written")
    assert disk.kept == [(1,)]
    wait_until(lambda: landing.problem == "", "all to be well")
    landing.close()


def test_nothing_is_written_after_the_end() -> None:
    disk = Disk()
    landing = ReceiptWriter(disk.write)
    landing.start()
    landing.close()
    landing.add([(1,)])
    assert not disk.tried.wait(0.2)
