"""Landing: receipts are written beside the epochs, not between them.

Between two epochs nothing is copied, so nothing may be done there that can wait: writing a file
takes Spark a few hundred milliseconds. One thread writes what has come, all of it in one go; what
cannot be written now is tried again later, and the reason is told.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from sparkmirror.engine.receipts import Row
from sparkmirror.errors import MirrorError
from sparkmirror.wire.backoff import Backoff

log = logging.getLogger(__name__)


class Landing:
    """Writes rows in the background. Everything here may be called by any thread."""

    def __init__(self, write: Callable[[Sequence[Row]], None]) -> None:
        """`write` adds rows to the receipts, or raises a MirrorError."""
        self.trouble = ""
        """Why the last receipts could not be written, if they could not."""
        self._write = write
        self._rows: list[Row] = []
        self._news = threading.Condition()
        self._is_hurried = False
        self._is_over = False
        self._backoff = Backoff(first_s=1.0, longest_s=60.0)
        self._thread = threading.Thread(target=self._run, name="landing", daemon=True)

    def start(self) -> None:
        """Begin to write what comes."""
        self._thread.start()

    def add(self, rows: Sequence[Row]) -> None:
        """Have rows written soon."""
        with self._news:
            self._rows += rows
            self._news.notify_all()

    @property
    def waiting(self) -> int:
        """How many rows are not written yet."""
        return len(self._rows)

    def hurry(self) -> None:
        """Wait no longer before another try."""
        with self._news:
            self._is_hurried = True
            self._news.notify_all()

    def close(self) -> None:
        """Write no more."""
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._rows or self._is_over)
                if self._is_over:
                    return
                waiting = list(self._rows)
            try:
                self._write(waiting)
            except MirrorError as error:
                self._wait_after(error)
            else:
                with self._news:
                    del self._rows[: len(waiting)]
                self.trouble = ""
                self._backoff.reset()

    def _wait_after(self, error: MirrorError) -> None:
        with self._news:
            if self._is_over:
                return
            log.error("%d receipts could not be written", len(self._rows), exc_info=error)
            self.trouble = f"receipts cannot be written: {error}"
            self._news.wait_for(
                lambda: self._is_over or self._is_hurried, timeout=self._backoff.pause_s()
            )
            self._is_hurried = False
