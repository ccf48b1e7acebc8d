"""Writes receipts in the background, while the next epoch already runs.

The next epoch should follow soon, and Spark takes a few hundred milliseconds to write a file. So
one thread writes the receipts later, all waiting rows at once. It retries rows that cannot be
written, and `problem` says why. Its first write has no rows: a directory that cannot be written is
a problem at once, not only at the end of the first epoch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from sparkmirror.backoff import Backoff
from sparkmirror.engine.spark.receipt_rows import ReceiptRow
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)


class ReceiptWriter:
    """Writes rows in the background. Any thread may call it."""

    def __init__(self, write: Callable[[Sequence[ReceiptRow]], None]) -> None:
        """`write` appends rows to the receipts directory, or raises MirrorError.

        The text of the error begins with the directory.
        """
        self.problem = ""
        """Why the last write failed; empty if it succeeded."""
        self._write = write
        self._rows: list[ReceiptRow] = []
        self._condition = threading.Condition()
        self._retry_requested = False
        self._closed = False
        self._backoff = Backoff(initial_s=1.0, max_s=15.0)
        self._thread = threading.Thread(target=self._run, name="receipt-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, rows: Sequence[ReceiptRow]) -> None:
        """Queue rows; returns at once."""
        with self._condition:
            self._rows += rows
            self._condition.notify_all()

    @property
    def pending_rows(self) -> int:
        """How many rows are not written yet."""
        return len(self._rows)

    def retry_now(self) -> None:
        """End the pause before the next try."""
        with self._condition:
            self._retry_requested = True
            self._condition.notify_all()

    def close(self) -> None:
        """End the thread after the write in progress; waiting rows are dropped."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _run(self) -> None:
        has_written = False
        while True:
            with self._condition:
                if has_written:
                    self._condition.wait_for(lambda: self._rows or self._closed)
                if self._closed:
                    return
                waiting = list(self._rows)
            try:
                self._write(waiting)
            except MirrorError as error:
                self._back_off(error)
            else:
                with self._condition:
                    del self._rows[: len(waiting)]
                self.problem, has_written = "", True
                self._backoff.reset()

    def _back_off(self, error: MirrorError) -> None:
        with self._condition:
            if self._closed:
                return
            log.error(
                "%d receipts not written; they are tried again", len(self._rows), exc_info=error
            )
            self.problem = (
                f"receipts cannot be written to {error}; copying goes on, and the driver keeps the"
                " receipts and tries again"
            )
            self._condition.wait_for(
                lambda: self._closed or self._retry_requested, timeout=self._backoff.next_delay_s()
            )
            self._retry_requested = False
