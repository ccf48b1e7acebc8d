"""One outage for several tests: what takes long is stopped and started once for all of them.

A scenario is a generator that yields twice. It prepares, looks what happens during the outage, and
looks what happens after it. Each test checks its own scenario, so each rule keeps its test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

Scenario = Iterator[None]


@dataclass(frozen=True, slots=True)
class OutageResult:
    """The errors of the scenarios that failed, by name. The others went on to their end."""

    names: frozenset[str]
    errors: Mapping[str, Exception]

    def check(self, name: str) -> None:
        """Raise the error of a scenario, if it failed."""
        assert name in self.names
        if name in self.errors:
            raise self.errors[name]


def run_in_one_outage(
    scenarios: Mapping[str, Scenario], outage: AbstractContextManager[object]
) -> OutageResult:
    """Run all scenarios, one after the other in each phase. The block of `outage` is the outage."""
    running = dict(scenarios)
    errors: dict[str, Exception] = {}

    def run_phase() -> None:
        for name, scenario in list(running.items()):
            try:
                next(scenario)
            except StopIteration:
                del running[name]
            except Exception as error:  # noqa: BLE001 - the scenario's test raises it
                errors[name] = error
                del running[name]

    run_phase()
    with outage:
        run_phase()
    run_phase()
    assert running == {}, "a scenario yields twice"
    return OutageResult(frozenset(scenarios), errors)
