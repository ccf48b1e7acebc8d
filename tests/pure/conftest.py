"""The time limit of pure tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
TIMEOUT_S = 240

settings.register_profile(
    "pure", settings.get_profile("sparkmirror"), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pure")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the time limit. A test of one second may take a minute on a busy computer."""
    for item in items:
        if item.path.is_relative_to(HERE) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
