"""Waiting with a reason and an end, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], reason: str, timeout_s: float = 20.0) -> None:
    """Wait until a condition holds; the test fails with the reason if it does not."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain: {reason}")
        time.sleep(0.05)
