"""Measures how fast dedicated mode catches up, once a system is warm.

Both systems get the same `mm2.properties`, with all three connectors; Java has its tuning besides.
A system starts and copies the first records of a topic: Java's compiler has done its work then. An
open transaction hides the next records while they are written. The time counts from the first poll
that finds one of them on the target.
"""

from __future__ import annotations

import time
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.end_offsets import EndOffsets, wait_for_records
from bench.open_transaction import open_transaction
from bench.scale import Scale
from bench.session import BenchSession, rotated_systems
from bench.systems import TUNED_TASKS, System
from bench.throughput import (
    ALL_RECORDS_S,
    FILL_S,
    FIRST_RECORD_S,
    OPEN_S,
    PARTITIONS,
    POLL_INTERVAL_S,
    WARM_S,
    WORKLOADS,
    measure_copy,
    run_s,
    scaled,
    warm_up,
)
from bench.workloads import Workload
from sparkmirror.wire.batch.compression import CompressionType

NAME = "dedicated"
SYSTEMS = (System.MM2_TUNED, System.SPARKMIRROR)
WARM_SHARE = 0.5
"""The share of a workload's records that a system copies before its rate counts."""


def name_of(workload: Workload) -> str:
    """Return the name by which this part of a workload is selected."""
    return f"{NAME}-{workload.name}"


UNCOMPRESSED = tuple(one for one in WORKLOADS if one.codec is CompressionType.NONE)
WORKLOAD_NAMES = tuple(map(name_of, UNCOMPRESSED))


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    round_s = sum(_run_s(system, scale) for system in SYSTEMS)
    return OPEN_S + WARM_S + scale.rounds * len(UNCOMPRESSED) * round_s


def run(session: BenchSession) -> None:
    """Measure both systems in each round of each workload."""
    with running_clusters(session.reaper, session.show_status) as clusters:
        warm_up(session, clusters)
        for workload in UNCOMPRESSED:
            for number in range(session.scale.rounds if session.includes(name_of(workload)) else 0):
                _run_round(session, clusters, scaled(workload, session.scale), number)


def _run_round(
    session: BenchSession, clusters: BenchClusters, workload: Workload, number: int
) -> None:
    for system in rotated_systems(number):
        if system not in SYSTEMS:
            continue
        template = BenchRun(bench=NAME, workload=workload.name, who=system, round=number + 1)

        def measure(template: BenchRun = template) -> BenchRun:
            return _measure(template, clusters, workload, session.scale.window_s)

        session.measure(template, measure, _run_s(system, session.scale))


def _measure(
    template: BenchRun, clusters: BenchClusters, workload: Workload, window_s: float
) -> BenchRun:
    topic = f"{workload.name}-{template.who}-{template.round}"
    warm = replace(workload, records=int(workload.records * WARM_SHARE))
    flow = clusters.flow([topic], PARTITIONS, tasks=TUNED_TASKS, all_connectors=True)
    copied = clusters.fill_source_topic(topic, warm, PARTITIONS)
    try:
        with clusters.running_system(template.who, flow) as process:
            ends = EndOffsets(clusters.target.access(), flow.remote_partitions)
            try:
                wait_for_records(ends, process, 1, FIRST_RECORD_S, POLL_INTERVAL_S)
                start_s = process.tree.age_s()
                wait_for_records(ends, process, copied, ALL_RECORDS_S, POLL_INTERVAL_S)
                with open_transaction(flow.source, topic, PARTITIONS):
                    hidden = clusters.add_records(topic, workload, PARTITIONS) + PARTITIONS
                begun = time.monotonic()
                measured = measure_copy(
                    template, process, ends, copied + hidden, window_s, copied_before=copied
                )
                visible_s = time.monotonic() - begun
            finally:
                ends.close()
            end_s = process.stop()
    finally:
        clusters.delete_source_topics([topic])
    wait_s = visible_s - measured.figures["took_s"]
    figures = {**measured.figures, "start_s": start_s, "first_record_s": wait_s, "end_s": end_s}
    return replace(measured, figures=figures)


def _run_s(system: System, scale: Scale) -> float:
    return run_s(system, scale) + FILL_S * (1 + WARM_SHARE) + WARM_S
