"""How much memory a mirror takes at most while it catches up, all its processes together.

A round of its own, because counting pages costs time that would be missing elsewhere. Everybody is
watched for the whole window, also after it has nothing left to do.
"""

from __future__ import annotations

import time
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.scale import Scale
from bench.session import BenchSession, rotated_systems
from bench.system_process import SystemProcess
from bench.systems import System
from bench.throughput import PARTITIONS, WORKLOADS

NAME = "memory"
WORKLOAD = WORKLOADS[0]
SAMPLE_INTERVAL_S = 0.2
START_S = 10.0
_OPEN_S = 25.0
_OVERHEAD_S = 8.0


def expected_s(scale: Scale) -> float:
    """About how long all of it takes."""
    return _OPEN_S + scale.rounds * len(System) * _run_s(scale)


def run(desk: BenchSession) -> None:
    """Every round, every contestant."""
    with running_clusters(desk.guard, desk.show_status) as stage:
        with desk.step(f"filling a topic: {WORKLOAD.title}", _OPEN_S):
            stage.fill_source_topic(WORKLOAD.name, WORKLOAD, PARTITIONS)
        for number in range(desk.scale.rounds):
            for who in rotated_systems(number):
                blank = BenchRun(bench=NAME, workload=WORKLOAD.name, who=who, round=number + 1)

                def measure(blank: BenchRun = blank) -> BenchRun:
                    return _measure(blank, stage, START_S + desk.scale.window_s)

                desk.measure(blank, measure, _run_s(desk.scale))


def _measure(blank: BenchRun, stage: BenchClusters, seconds: float) -> BenchRun:
    with stage.running_system(blank.who, stage.flow([WORKLOAD.name], PARTITIONS)) as racer:
        curve = _sample_memory(racer, seconds)
        racer.stop()
    peak = max(size for _, size in curve)
    return replace(blank, figures={"peak_bytes": peak}, curve=curve)


def _sample_memory(racer: SystemProcess, seconds: float) -> tuple[tuple[float, float], ...]:
    begun, curve = time.monotonic(), []
    while (now := time.monotonic() - begun) < seconds:
        racer.ensure_running()
        curve.append((round(now, 2), float(racer.tree.memory_bytes())))
        time.sleep(SAMPLE_INTERVAL_S)
    return tuple(curve)


def _run_s(scale: Scale) -> float:
    return _OVERHEAD_S + START_S + scale.window_s
