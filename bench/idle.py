"""Measures the processor time of a system over 1,000 partitions without new records."""

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
"""One record for each partition: its copy shows that the system has found the partition."""
TOPICS = 10
PARTITIONS = 100
DISCOVERY_TIMEOUT_S = 240.0
SETTLE_S = 20.0
_OPEN_S = 20.0
_OVERHEAD_S = 30.0


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + len(System) * (_OVERHEAD_S + SETTLE_S + scale.idle_s)


def run(session: BenchSession) -> None:
    """Measure each system once."""
    topics = [f"quiet-{number}" for number in range(TOPICS)]
    with running_clusters(session.reaper, session.show_status) as clusters:
        with session.step(f"making {TOPICS * PARTITIONS:,} partitions", _OPEN_S):
            for topic in topics:
                clusters.fill_source_topic(topic, WORKLOAD, PARTITIONS)
        for system in System:
            template = BenchRun(bench=NAME, workload=WORKLOAD.name, who=system, round=1)

            def measure(template: BenchRun = template) -> BenchRun:
                return _measure(template, clusters, topics, session.scale.idle_s)

            session.measure(template, measure, _OVERHEAD_S + SETTLE_S + session.scale.idle_s)


def _measure(
    template: BenchRun, clusters: BenchClusters, topics: list[str], idle_s: float
) -> BenchRun:
    flow = clusters.flow(topics, PARTITIONS)
    with clusters.running_system(template.who, flow) as process:
        ends = EndOffsets(clusters.target.access(), flow.remote_partitions)
        try:
            wait_for_records(ends, process, TOPICS * PARTITIONS, DISCOVERY_TIMEOUT_S, 0.5)
        finally:
            ends.close()
        all_found_s = process.tree.age_s()
        time.sleep(SETTLE_S)
        begun, cpu_s = time.monotonic(), process.tree.cpu_s()
        time.sleep(idle_s)
        took_s, cpu_s = time.monotonic() - begun, process.tree.cpu_s() - cpu_s
        process.ensure_running()
        end_s = process.stop()
    return replace(
        template,
        figures={
            "cpu_share": cpu_s / took_s,
            "all_found_s": all_found_s,
            "took_s": took_s,
            "end_s": end_s,
        },
    )
