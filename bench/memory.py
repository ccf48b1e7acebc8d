"""Measures the peak memory of all processes of a system while it catches up.

This is a separate part of the benchmark, because the sampling costs processor time. Every system is
sampled for the whole window, also after it has copied all records.
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
    """Return the expected duration of this part."""
    return _OPEN_S + scale.rounds * len(System) * _run_s(scale)


def run(session: BenchSession) -> None:
    """Measure each system in each round."""
    with running_clusters(session.reaper, session.show_status) as clusters:
        with session.step(f"filling a topic: {WORKLOAD.title}", _OPEN_S):
            clusters.fill_source_topic(WORKLOAD.name, WORKLOAD, PARTITIONS)
        for number in range(session.scale.rounds):
            for system in rotated_systems(number):
                template = BenchRun(
                    bench=NAME, workload=WORKLOAD.name, who=system, round=number + 1
                )

                def measure(template: BenchRun = template) -> BenchRun:
                    return _measure(template, clusters, START_S + session.scale.window_s)

                session.measure(template, measure, _run_s(session.scale))


def _measure(template: BenchRun, clusters: BenchClusters, seconds: float) -> BenchRun:
    with clusters.running_system(
        template.who, clusters.flow([WORKLOAD.name], PARTITIONS)
    ) as process:
        curve = _sample_memory(process, seconds)
        process.stop()
    peak = max(size for _, size in curve)
    return replace(template, figures={"peak_bytes": peak}, curve=curve)


def _sample_memory(process: SystemProcess, seconds: float) -> tuple[tuple[float, float], ...]:
    begun, curve = time.monotonic(), []
    while (now := time.monotonic() - begun) < seconds:
        process.ensure_running()
        curve.append((round(now, 2), float(process.tree.memory_bytes())))
        time.sleep(SAMPLE_INTERVAL_S)
    return tuple(curve)


def _run_s(scale: Scale) -> float:
    return _OVERHEAD_S + START_S + scale.window_s
