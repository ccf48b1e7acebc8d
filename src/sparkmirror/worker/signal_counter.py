"""Ctrl-C, taken kindly: the first asks to come to an end, the second ends at once.

A request to terminate (a container that is stopped, a service manager) counts as a Ctrl-C. Nothing
is printed from here: a signal may come in the middle of printing something else.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalCounter:
    """Counts the signals."""

    def __init__(self) -> None:
        self._count = 0

    def is_stop_requested(self) -> bool:
        """Whether somebody wants it to end."""
        return self._count > 0

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Take one signal; the second is an interruption like any other."""
        del number, frame
        self._count += 1
        if self._count > 1:
            raise KeyboardInterrupt


@contextmanager
def count_signals() -> Iterator[SignalCounter]:
    """Take signals inside the block; afterwards they mean what they meant before."""
    counted = SignalCounter()
    before = {number: signal.signal(number, counted.on_signal) for number in _SIGNALS}
    try:
        yield counted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
