"""How a process is told to end: the first signal asks, the second one does not.

SIGTERM and SIGINT are alike here, as they are for a JVM. Belongs to the main thread.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

EXIT_SECOND_SIGNAL = 130
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class ShutdownSignal:
    """Waits for the first signal; the second ends the process on the spot."""

    def __init__(self) -> None:
        self._requested = threading.Event()

    def install(self) -> None:
        """Listen to signals from now on."""
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)

    @property
    def is_requested(self) -> bool:
        """Whether somebody wants the process to end."""
        return self._requested.is_set()

    def request(self) -> None:
        """Want it from inside the process. Any thread may."""
        self._requested.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until somebody wants the process to end, at most so long; say whether it is so."""
        return self._requested.wait(timeout_s)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._requested.is_set():
            os._exit(EXIT_SECOND_SIGNAL)
        self._requested.set()
