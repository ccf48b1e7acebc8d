"""Frees what a failed test leaves behind, so that no later test fails because of it.

A traceback keeps the frames of a failed test alive: its sockets and processes are closed when the
next test starts, and the warnings about that would fail the next test.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Generator

import pytest

FAILED = pytest.StashKey[bool]()
LAST_ERROR = ("last_exc", "last_type", "last_value", "last_traceback")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a phase of the test failed."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Free the frames of a failed test after its teardown."""
    try:
        return (yield)
    finally:
        if item.stash.get(FAILED, False):
            free_frames()


def free_frames() -> None:
    """Drop the last traceback and collect garbage; warnings of what is collected are ignored."""
    for name in LAST_ERROR:
        vars(sys).pop(name, None)
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
    finally:
        sys.unraisablehook = hook
