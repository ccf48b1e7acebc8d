"""One run of one system, with its measured figures. Plain values, written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from bench.systems import System


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """One run of one system in one round. Compare it only within its bench and workload."""

    bench: str
    workload: str
    who: System
    round: int
    figures: Mapping[str, float] = field(default_factory=dict)
    load: tuple[float, ...] = ()
    """The computer's load averages at the end of the run."""
    curve: tuple[tuple[float, float], ...] = ()
    """Samples: a time in seconds, and the value at that time."""
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the run as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the run of an object from `to_json`."""
        return cls(
            bench=value["bench"],
            workload=value["workload"],
            who=System(value["who"]),
            round=value["round"],
            figures=value["figures"],
            load=tuple(value["load"]),
            curve=tuple((at, records) for at, records in value["curve"]),
            failure=value["failure"],
        )
