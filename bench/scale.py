"""The rounds and durations of a benchmark: full or quick."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Rounds and durations. A window ends early when the system has copied all records."""

    rounds: int = 3
    window_s: float = 12.0
    latency_s: float = 300.0
    """At full scale as long as an epoch, so that one change of epochs falls into it."""
    idle_s: float = 60.0
    steady_s: float = 60.0
    hour_s: float = 3600.0
    share: float = 1.0
    """The share of a workload's records that is written."""


FULL = Scale()
QUICK = Scale(
    rounds=1,
    window_s=6.0,
    latency_s=40.0,
    idle_s=20.0,
    steady_s=30.0,
    hour_s=240.0,
    share=0.4,
)
