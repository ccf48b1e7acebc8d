"""Up to a thousand seeded inputs for each parser; `make fuzz` passes ten thousand, another seed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fuzz.fuzz_target import FuzzFailure, FuzzTarget, direct, run_target
from tests.fuzz.targets import all_targets

INPUTS = 1000
SEED = 11


@pytest.mark.parametrize("target", all_targets(), ids=lambda target: target.name)
def test_a_parser_returns_or_raises_its_declared_errors(
    target: FuzzTarget, record_property: Callable[[str, object], None]
) -> None:
    inputs = INPUTS // target.cost
    report = run_target(target, inputs, SEED)
    record_property("fuzz", str(report))
    assert report.accepted + report.refused == inputs
    assert report.refused or not target.errors, "the inputs are not changed enough"


def failing(parse: object) -> FuzzTarget:
    assert callable(parse)
    return FuzzTarget(
        name="fails", seeds=[b"seed"], open_parser=direct(parse), errors=(ValueError,)
    )


def test_the_runner_finds_undeclared_errors_and_memory_and_shows_the_input() -> None:
    with pytest.raises(FuzzFailure, match="KeyError"):
        run_target(failing({}.__getitem__), INPUTS, SEED)
    with pytest.raises(FuzzFailure, match="bytes of memory"):
        run_target(failing(lambda data: bytearray(100 << 20)), INPUTS, SEED)


def test_the_same_seed_gives_the_same_inputs() -> None:
    seen: list[bytes] = []
    for seed in (SEED, SEED, SEED + 1):
        run_target(failing(seen.append), 50, seed)
    assert seen[:50] == seen[50:100]
    assert seen[:50] != seen[100:]
