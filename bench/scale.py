"""How long each part of the benchmark takes: in full, or as a quick look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Rounds and times. A window ends early when everything is copied."""

    rounds: int = 3
    window_s: float = 12.0
    latency_s: float = 300.0
    """As long as an epoch, so that one change of epochs falls into it."""
    idle_s: float = 60.0
    share: float = 1.0
    """Of the records that a workload has in full."""


FULL = Scale()
QUICK = Scale(rounds=1, window_s=6.0, latency_s=40.0, idle_s=20.0, share=0.4)
