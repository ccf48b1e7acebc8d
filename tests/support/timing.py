"""How long something takes, on a computer that may stand still at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable

ATTEMPTS = 3


def fastest_run_s(attempt: Callable[[], object]) -> float:
    """Try something several times, and return how long the quickest try took.

    What is slow by itself is slow every time; what the computer held up is so now and then.
    """
    took: list[float] = []
    for _ in range(ATTEMPTS):
        began = time.monotonic()
        attempt()
        took.append(time.monotonic() - began)
    return min(took)
