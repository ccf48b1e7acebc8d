"""A wall clock that is wrong, for processes that a test starts: as on a host with a bad clock.

A test names the error in the environment of a process; what that one starts has the same clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

CLOCK_SKEW_VARIABLE = "TESTS_CLOCK_AHEAD_MS"


def skewed_environment(ahead_ms: int) -> Mapping[str, str]:
    """An environment in which the clock is so far ahead."""
    return {**os.environ, CLOCK_SKEW_VARIABLE: str(ahead_ms)}


def apply_clock_skew() -> None:
    """Let this process live in the time that its environment names."""
    ahead_ms = int(os.environ.get(CLOCK_SKEW_VARIABLE, "0"))
    if not ahead_ms:
        return
    true_s, true_ns = time.time, time.time_ns
    vars(time).update(
        time=lambda: true_s() + ahead_ms / 1000,
        time_ns=lambda: true_ns() + ahead_ms * 1_000_000,
    )
