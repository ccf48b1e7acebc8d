"""SIGTERM and SIGINT: the first signal asks a program to end, the second one forces it to.

Both signals mean the same, as they do for a JVM. What "force" means is the program's choice:
`exit_at_once` for a worker, `interrupt` for a command with a terminal. The handlers print nothing:
a signal may arrive in the middle of a print. Install handlers in the main thread only.
"""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

EXIT_SECOND_SIGNAL = 130
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def exit_at_once() -> NoReturn:
    """End the process without any clean-up."""
    os._exit(EXIT_SECOND_SIGNAL)


def interrupt() -> NoReturn:
    """Raise KeyboardInterrupt in the main thread, as Python does for SIGINT."""
    raise KeyboardInterrupt


class ShutdownSignal:
    """Remembers the first signal; calls `force` for every later one."""

    def __init__(self, force: Callable[[], NoReturn] = exit_at_once) -> None:
        self._force = force
        self._requested = False
        # Unlike threading.Event, its put() is safe in a handler that interrupts a get().
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()

    def install(self) -> None:
        """Handle signals from now on."""
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle signals inside the block; the old handlers come back after it."""
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.install()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def is_requested(self) -> bool:
        """Whether a signal has arrived."""
        return self._requested

    def wait(self, timeout_s: float) -> bool:
        """Wait for the first signal, at most so long; returns whether it has arrived."""
        if not self._requested:
            with suppress(queue.Empty):
                self._wakeups.get(timeout=timeout_s)
        return self._requested

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._requested:
            self._force()
        self._requested = True
        self._wakeups.put(None)
