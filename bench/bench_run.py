"""One run of one contestant, and what was measured in it. Plain values, written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from bench.systems import System


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """What one contestant did in one round. Only comparable within its bench and workload."""

    bench: str
    workload: str
    who: System
    round: int
    figures: Mapping[str, float] = field(default_factory=dict)
    load: tuple[float, ...] = ()
    """The computer's load averages at the end of the run."""
    curve: tuple[tuple[float, float], ...] = ()
    """Seconds since the first record, and records by then."""
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
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
