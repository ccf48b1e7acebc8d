"""Tiers by folder: tests/pure, tests/brokers, tests/spark.

Fixtures that start things live with their tier.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TIERS = ("pure", "brokers", "spark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with the tier of the folder it lies in."""
    for item in items:
        tier = item.path.relative_to(TESTS).parts[0]
        if tier not in TIERS:
            raise pytest.UsageError(f"{item.path}: tests live in tests/{{{','.join(TIERS)}}}")
        item.add_marker(tier)
