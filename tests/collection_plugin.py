"""Turns the garbage collector off while pytest collects; later it leaves the collected tests out.

Nothing of some thousand tests is garbage, and each worker of a run collects all of them. Looking
for garbage among them again and again took a third of that time.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector; later it does not look at the tests any more."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
