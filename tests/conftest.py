"""The tier of a test is its folder: tests/pure, tests/brokers, tests/spark.

Fixtures that start processes are in the conftest of their tier.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from sparkmirror.java.java_runtime import java_variables

pytest_plugins = [
    "tests.bytecode_plugin",
    "tests.collection_plugin",
    "tests.failure_cleanup",
    "tests.file_order",
    "tests.lab_plugin",
    "tests.rerun_plugin",
    "tests.tutorial_table_plugin",
]

TESTS = Path(__file__).parent
TIERS = ("pure", "brokers", "spark")

# Spark's own scripts use the same Java as sparkmirror.
os.environ.update(java_variables(os.environ))

# A slow computer must not fail a test. Each test has its own time limit.
settings.register_profile("sparkmirror", deadline=None, max_examples=50)
settings.load_profile("sparkmirror")

# Under nohup, and in the background of some shells, signals are ignored. Programs that tests start
# would ignore them, too.
for number, default in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, default)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its tier."""
    for item in items:
        tier = item.path.relative_to(TESTS).parts[0]
        if tier not in TIERS:
            raise pytest.UsageError(f"{item.path}: tests live in tests/{{{','.join(TIERS)}}}")
        item.add_marker(tier)
