"""How often connectors refresh, by what all of them cost."""

from __future__ import annotations

import pytest

from sparkmirror.connect.connectors.shared.refresh_cpu_limit import RefreshCpuLimit


def test_the_pause_grows_with_the_cost_of_all_connectors() -> None:
    budget = RefreshCpuLimit()
    assert budget.pause_s("east", 0.01) == pytest.approx(0.5)
    assert budget.pause_s("west", 0.03) == pytest.approx(0.03 * 50 + 0.01 * 200)
    assert budget.pause_s("east", 0.02) == pytest.approx(0.02 * 50 + 0.03 * 200), (
        "only its last refresh counts"
    )


def test_a_connector_that_has_ended_costs_nothing() -> None:
    budget = RefreshCpuLimit()
    budget.pause_s("east", 0.01)
    budget.remove("east")
    budget.remove("unknown")
    assert budget.pause_s("west", 0.03) == pytest.approx(1.5)
