"""What a mirror costs when nothing happens: processor time over 1,000 quiet partitions."""

from __future__ import annotations

import time
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.end_offsets import EndOffsets, wait_for_records
from bench.scale import Scale
from bench.session import BenchSession
from bench.systems import System
from bench.workloads import Workload

NAME = "idle"
WORKLOAD = Workload(name="quiet", title="quiet", value_bytes=100, batch_bytes=1, records=1)
"""A record in each partition, so that we see when a mirror has found them all."""
TOPICS = 10
PARTITIONS = 100
DISCOVERY_TIMEOUT_S = 240.0
SETTLE_S = 20.0
_OPEN_S = 20.0
_OVERHEAD_S = 30.0


def expected_s(scale: Scale) -> float:
    """About how long all of it takes."""
    return _OPEN_S + len(System) * (_OVERHEAD_S + SETTLE_S + scale.idle_s)


def run(desk: BenchSession) -> None:
    """Once for each contestant."""
    topics = [f"quiet-{number}" for number in range(TOPICS)]
    with running_clusters(desk.guard, desk.show_status) as stage:
        with desk.step(f"making {TOPICS * PARTITIONS:,} partitions", _OPEN_S):
            for topic in topics:
                stage.fill_source_topic(topic, WORKLOAD, PARTITIONS)
        for who in System:
            blank = BenchRun(bench=NAME, workload=WORKLOAD.name, who=who, round=1)

            def measure(blank: BenchRun = blank) -> BenchRun:
                return _measure(blank, stage, topics, desk.scale.idle_s)

            desk.measure(blank, measure, _OVERHEAD_S + SETTLE_S + desk.scale.idle_s)


def _measure(blank: BenchRun, stage: BenchClusters, topics: list[str], idle_s: float) -> BenchRun:
    flow = stage.flow(topics, PARTITIONS)
    with stage.running_system(blank.who, flow) as racer:
        ends = EndOffsets(stage.target.access(), flow.remote_partitions)
        try:
            wait_for_records(ends, racer, TOPICS * PARTITIONS, DISCOVERY_TIMEOUT_S, 0.5)
        finally:
            ends.close()
        all_found_s = racer.tree.age_s()
        time.sleep(SETTLE_S)
        begun, cpu_s = time.monotonic(), racer.tree.cpu_s()
        time.sleep(idle_s)
        took_s, cpu_s = time.monotonic() - begun, racer.tree.cpu_s() - cpu_s
        racer.ensure_running()
        end_s = racer.stop()
    return replace(
        blank,
        figures={
            "cpu_share": cpu_s / took_s,
            "all_found_s": all_found_s,
            "took_s": took_s,
            "end_s": end_s,
        },
    )
