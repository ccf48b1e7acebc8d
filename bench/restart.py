"""Measures how long dedicated mode takes to its first record, and to the next one after kill -9.

All processes of a system are killed while records keep coming. It is started again at once, with
the same files. The time counts from the start of the process to a record more on the target.
"""

from __future__ import annotations

import time
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.end_offsets import EndOffsets, wait_for_records
from bench.latency import FIRST_RECORD_S
from bench.scale import Scale
from bench.session import BenchSession, rotated_systems
from bench.steady import SYSTEMS, producing, steady_flow
from bench.steady_rates import SteadyRate
from bench.systems import System

NAME = "restart"
RATE = SteadyRate(per_second=1_000, topics=1, partitions=4)
RUNNING_S = 20.0
"""Sparkmirror's short first epoch is over then, and Java has written offsets."""
LAST_WRITES_S = 1.0
"""Requests that were under way arrive at the target within this time."""
_POLL_INTERVAL_S = 0.05
_OPEN_S = 10.0
_RUN_S = 60.0


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + scale.rounds * len(SYSTEMS) * _RUN_S


def run(session: BenchSession) -> None:
    """Measure both systems in each round."""
    with running_clusters(session.reaper, session.show_status) as clusters:
        for number in range(session.scale.rounds):
            for system in rotated_systems(number):
                if system in SYSTEMS:
                    _run_system(session, clusters, system, number + 1)


def _run_system(
    session: BenchSession, clusters: BenchClusters, system: System, number: int
) -> None:
    template = BenchRun(bench=NAME, workload=RATE.name, who=system, round=number)
    session.measure(template, lambda: _measure(template, clusters), _RUN_S)


def _measure(template: BenchRun, clusters: BenchClusters) -> BenchRun:
    with steady_flow(clusters, template.who, RATE) as flow:
        ends = EndOffsets(clusters.target.access(), flow.remote_partitions)
        seconds = int(FIRST_RECORD_S + RUNNING_S)
        try:
            with (
                clusters.running_system(template.who, flow) as process,
                producing(clusters, flow, RATE, seconds),
            ):
                wait_for_records(ends, process, 1, FIRST_RECORD_S, _POLL_INTERVAL_S)
                start_s, start_cpu_s = process.tree.age_s(), process.tree.cpu_s()
                time.sleep(RUNNING_S)
                process.ensure_running()
                process.kill()
                time.sleep(LAST_WRITES_S)
                before = ends.total_records()
                process.start()
                wait_for_records(ends, process, before + 1, FIRST_RECORD_S, _POLL_INTERVAL_S)
                restart_s = process.tree.age_s()
        finally:
            ends.close()
    figures = {"start_s": start_s, "start_cpu_s": start_cpu_s, "restart_s": restart_s}
    return replace(template, figures=figures)
