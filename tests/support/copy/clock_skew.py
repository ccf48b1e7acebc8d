"""A wrong wall clock for processes that a test starts.

An environment variable has the difference in milliseconds. Child processes inherit it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.start_module import start_module_environment

CLOCK_SKEW_VARIABLE = "TESTS_CLOCK_AHEAD_MS"


def skewed_program_environment(ahead_ms: int, directory: Path) -> Mapping[str, str]:
    """Return an environment in which every Python process has a clock this far ahead.

    `directory` gets a module that Python imports at each start.
    """
    return start_module_environment(
        directory, __name__, apply_clock_skew.__name__, {CLOCK_SKEW_VARIABLE: str(ahead_ms)}
    )


def apply_clock_skew() -> None:
    """Set the clock of this process ahead by the value in its environment."""
    ahead_ms = int(os.environ.get(CLOCK_SKEW_VARIABLE, "0"))
    if not ahead_ms:
        return
    true_s, true_ns = time.time, time.time_ns
    vars(time).update(
        time=lambda: true_s() + ahead_ms / 1000,
        time_ns=lambda: true_ns() + ahead_ms * 1_000_000,
    )
