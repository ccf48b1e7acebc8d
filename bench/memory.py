"""How much memory a mirror takes at most while it catches up, all its processes together.

A round of its own, because counting pages costs time that would be missing elsewhere. Everybody is
watched for the whole window, also after it has nothing left to do.
"""

from __future__ import annotations

import time
from dataclasses import replace

from bench.contestants import Who
from bench.desk import Desk, in_turn
from bench.racer import Racer
from bench.run import Run
from bench.scale import Scale
from bench.stage import Stage, opened
from bench.throughput import PARTITIONS, WORKLOADS

NAME = "memory"
WORKLOAD = WORKLOADS[0]
PAUSE_S = 0.2
START_S = 10.0
_OPEN_S = 25.0
_AROUND_S = 8.0


def expected_s(scale: Scale) -> float:
    """About how long all of it takes."""
    return _OPEN_S + scale.rounds * len(Who) * _run_s(scale)


def run(desk: Desk) -> None:
    """Every round, every contestant."""
    with opened(desk.guard, desk.say) as stage:
        with desk.step(f"filling a topic: {WORKLOAD.title}", _OPEN_S):
            stage.fill(WORKLOAD.name, WORKLOAD, PARTITIONS)
        for number in range(desk.scale.rounds):
            for who in in_turn(number):
                blank = Run(bench=NAME, workload=WORKLOAD.name, who=who, round=number + 1)

                def measure(blank: Run = blank) -> Run:
                    return _measure(blank, stage, START_S + desk.scale.window_s)

                desk.take(blank, measure, _run_s(desk.scale))


def _measure(blank: Run, stage: Stage, seconds: float) -> Run:
    with stage.racing(blank.who, stage.flow([WORKLOAD.name], PARTITIONS)) as racer:
        curve = _watch(racer, seconds)
        racer.end()
    peak = max(size for _, size in curve)
    return replace(blank, figures={"peak_bytes": peak}, curve=curve)


def _watch(racer: Racer, seconds: float) -> tuple[tuple[float, float], ...]:
    begun, curve = time.monotonic(), []
    while (now := time.monotonic() - begun) < seconds:
        racer.check()
        curve.append((round(now, 2), float(racer.tree.memory_bytes())))
        time.sleep(PAUSE_S)
    return tuple(curve)


def _run_s(scale: Scale) -> float:
    return _AROUND_S + START_S + scale.window_s
