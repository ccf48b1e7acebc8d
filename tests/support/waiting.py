"""Waiting with a reason and an end, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_INTERVAL_S = 1.0
INTERVALS = 10
"""The interval is this part of the time waited: looking again and again costs processor time."""


def wait_until(
    condition: Callable[[], bool], reason: str, timeout_s: float = 60.0, interval_s: float = 0.05
) -> None:
    """Wait until a condition holds; the test fails with the reason if it does not.

    A condition that costs much wants a longer interval.
    The condition has a last look after the time is up: a computer that stood still meanwhile is no
    reason to fail.
    """
    began = time.monotonic()
    while True:
        waited_s = time.monotonic() - began
        is_last = waited_s > timeout_s
        if condition():
            return
        if is_last:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain: {reason}")
        time.sleep(max(interval_s, min(waited_s / INTERVALS, MAX_INTERVAL_S)))
