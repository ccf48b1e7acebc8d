"""Landing: receipts are written beside the epochs, not between them.

Between two epochs nothing is copied, so nothing may be done there that can wait: writing a file
takes Spark a few hundred milliseconds. One thread writes what has come, all of it in one go; what
cannot be written now is tried again later, and the reason is told.
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
    """Writes rows in the background. Everything here may be called by any thread."""

    def __init__(self, write: Callable[[Sequence[ReceiptRow]], None]) -> None:
        """`write` adds rows to the receipts, or raises a MirrorError."""
        self.problem = ""
        """Why the last receipts could not be written, if they could not."""
        self._write = write
        self._rows: list[ReceiptRow] = []
        self._condition = threading.Condition()
        self._retry_requested = False
        self._closed = False
        self._backoff = Backoff(initial_s=1.0, max_s=60.0)
        self._thread = threading.Thread(target=self._run, name="landing", daemon=True)

    def start(self) -> None:
        """Begin to write what comes."""
        self._thread.start()

    def add(self, rows: Sequence[ReceiptRow]) -> None:
        """Have rows written soon."""
        with self._condition:
            self._rows += rows
            self._condition.notify_all()

    @property
    def pending_rows(self) -> int:
        """How many rows are not written yet."""
        return len(self._rows)

    def retry_now(self) -> None:
        """Wait no longer before another try."""
        with self._condition:
            self._retry_requested = True
            self._condition.notify_all()

    def close(self) -> None:
        """Write no more."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _run(self) -> None:
        while True:
            with self._condition:
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
                self.problem = ""
                self._backoff.reset()

    def _back_off(self, error: MirrorError) -> None:
        with self._condition:
            if self._closed:
                return
            log.error("%d receipts could not be written", len(self._rows), exc_info=error)
            self.problem = f"receipts cannot be written: {error}"
            self._condition.wait_for(
                lambda: self._closed or self._retry_requested, timeout=self._backoff.next_delay_s()
            )
            self._retry_requested = False
