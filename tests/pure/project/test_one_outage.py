"""Several scenarios in one outage: each test fails for its own scenario only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.one_outage import run_in_one_outage


def test_all_scenarios_share_the_outage_and_one_that_fails_leaves_the_others_alone() -> None:
    seen: list[str] = []

    @contextmanager
    def outage() -> Iterator[None]:
        seen.append("begin")
        yield
        seen.append("end")

    def scenario(name: str, failure: str = "") -> Iterator[None]:
        for phase in ("before", "during"):
            seen.append(f"{name} {phase}")
            assert phase != failure
            yield
        seen.append(f"{name} after")

    result = run_in_one_outage({"a": scenario("a"), "b": scenario("b", "during")}, outage())
    assert seen == ["a before", "b before", "begin", "a during", "b during", "end", "a after"]
    result.check("a")
    with pytest.raises(AssertionError, match="during"):
        result.check("b")
    with pytest.raises(AssertionError):
        result.check("unknown")
