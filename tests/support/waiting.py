"""Waiting with a reason and an end, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], reason: str, timeout_s: float = 60.0) -> None:
    """Wait until a condition holds; the test fails with the reason if it does not.

    The condition has a last look after the time is up: a computer that stood still meanwhile is no
    reason to fail.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        is_last = time.monotonic() > deadline
        if condition():
            return
        if is_last:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain: {reason}")
        time.sleep(0.05)
