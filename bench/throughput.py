"""Measures how fast a system catches up with a full topic, by the end offsets on the target.

The time counts from the first poll that finds records on the target to the one that finds all of
them, or to the end of the window. So the rate does not include the start; `start_s` is a separate
figure.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.end_offsets import EndOffsets, wait_for_records
from bench.flow import Flow
from bench.scale import Scale
from bench.session import BenchSession, rotated_systems
from bench.system_process import SystemProcess
from bench.systems import TUNED_TASKS, System
from bench.workloads import Workload
from sparkmirror.errors import LabError
from sparkmirror.wire.batch.compression import CompressionType

NAME = "throughput"
PARTITIONS = 4
FIRST_RECORD_S = 120.0
ALL_RECORDS_S = 120.0
FURTHER_RECORDS_S = 1.0
"""Records that a transform should have left out arrive within this time."""
POLL_INTERVAL_S = 0.05
WORKLOADS = (
    Workload(
        name="1k-128k",
        title="1 KB, batches of 128 KB",
        value_bytes=1000,
        batch_bytes=128 << 10,
        records=1_000_000,
    ),
    Workload(
        name="100b-128k",
        title="100 B, batches of 128 KB",
        value_bytes=100,
        batch_bytes=128 << 10,
        records=8_000_000,
    ),
    Workload(
        name="1k-16k",
        title="1 KB, batches of 16 KB",
        value_bytes=1000,
        batch_bytes=16 << 10,
        records=800_000,
    ),
    Workload(
        name="100b-16k",
        title="100 B, batches of 16 KB",
        value_bytes=100,
        batch_bytes=16 << 10,
        records=6_000_000,
    ),
    Workload(
        name="100b-lz4",
        title="100 B, lz4",
        value_bytes=100,
        batch_bytes=128 << 10,
        records=10_000_000,
        codec=CompressionType.LZ4,
    ),
    Workload(
        name="100b-zstd",
        title="100 B, zstd",
        value_bytes=100,
        batch_bytes=128 << 10,
        records=10_000_000,
        codec=CompressionType.ZSTD,
    ),
)
_WARM_UP = Workload(
    name="warming",
    title="warming",
    value_bytes=1000,
    batch_bytes=64 << 10,
    records=2_000_000,
)
"""Without it the first system would run on brokers whose JVM has compiled nothing yet."""
_OVERHEAD_S = {
    System.MM2_DEFAULT: 14.0,
    System.MM2_TUNED: 13.0,
    System.PLAIN_LOOP: 4.0,
    System.SPARKMIRROR: 6.0,
}
"""The expected duration of the start and the end of a run."""
FILL_S = 12.0
WARM_S = 15.0
OPEN_S = 10.0


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return OPEN_S + WARM_S + len(WORKLOADS) * workload_s(scale)


def workload_s(scale: Scale) -> float:
    """Return the expected duration of one workload."""
    return FILL_S + scale.rounds * sum(run_s(system, scale) for system in System)


def run(session: BenchSession) -> None:
    """Measure each system in each round of each workload."""
    with running_clusters(session.reaper, session.show_status) as clusters:
        warm_up(session, clusters)
        for workload in WORKLOADS:
            if session.includes(workload.name):
                run_workload(session, clusters, scaled(workload, session.scale))


def warm_up(session: BenchSession, clusters: BenchClusters) -> None:
    """Let the target append records before the first run."""
    with session.step("warming the target up", WARM_S):
        clusters.warm_up_target(scaled(_WARM_UP, session.scale), PARTITIONS)


def run_workload(
    session: BenchSession,
    clusters: BenchClusters,
    workload: Workload,
    *,
    bench: str = NAME,
    systems: Collection[System] = tuple(System),
) -> None:
    """Fill a topic and measure these systems in each round, as runs of a part of the benchmark."""
    fill_workload(session, clusters, workload)
    for number in range(session.scale.rounds):
        run_round(session, clusters, workload, number, bench=bench, systems=systems)
    clusters.delete_source_topics([workload.name])


def fill_workload(session: BenchSession, clusters: BenchClusters, workload: Workload) -> None:
    """Create and fill the topic of a workload."""
    with session.step(f"filling a topic: {workload.title}", FILL_S):
        clusters.fill_source_topic(workload.name, workload, PARTITIONS)


def run_round(
    session: BenchSession,
    clusters: BenchClusters,
    workload: Workload,
    number: int,
    *,
    bench: str,
    systems: Collection[System],
) -> None:
    """Measure these systems in one round of a workload whose topic is full."""
    for system in rotated_systems(number):
        if system not in systems:
            continue
        template = BenchRun(bench=bench, workload=workload.name, who=system, round=number + 1)

        def measure(template: BenchRun = template) -> BenchRun:
            codec = workload.codec.name.lower()
            tasks = 1 if workload.chain is None else TUNED_TASKS
            flow = clusters.flow([workload.name], PARTITIONS, codec, workload.chain, tasks=tasks)
            records = workload.kept_total(PARTITIONS)
            return run_and_measure(template, clusters, flow, records, session.scale.window_s)

        session.measure(template, measure, run_s(system, session.scale))


def run_and_measure(
    template: BenchRun, clusters: BenchClusters, flow: Flow, records: int, window_s: float
) -> BenchRun:
    """Start a system, measure its copy and stop it. Blocks.

    A flow with transforms is awaited, and its run fails unless it ends with these records.
    """
    with clusters.running_system(template.who, flow) as process:
        ends = EndOffsets(clusters.target.access(), flow.remote_partitions)
        try:
            measured = measure_copy(template, process, ends, records, window_s)
            if flow.chain is not None:
                wait_for_exactly(ends, process, records)
        finally:
            ends.close()
        end_s = process.stop()
    return replace(measured, figures={**measured.figures, "end_s": end_s})


def measure_copy(
    template: BenchRun,
    process: SystemProcess,
    ends: EndOffsets,
    records: int,
    window_s: float,
    copied_before: int = 0,
) -> BenchRun:
    """Measure a system from its next copied record to the last, or to the end of the window.

    `records` and the curve include those that were copied before.
    """
    first = wait_for_records(ends, process, copied_before + 1, FIRST_RECORD_S, POLL_INTERVAL_S)
    begun, cpu_s, start_s = time.monotonic(), process.tree.cpu_s(), process.tree.age_s()
    curve = [(0.0, float(first))]
    while curve[-1][1] < records and curve[-1][0] < window_s:
        time.sleep(POLL_INTERVAL_S)
        process.ensure_running()
        curve.append((time.monotonic() - begun, float(ends.total_records())))
    cpu_s = process.tree.cpu_s() - cpu_s
    copied, took_s = curve[-1][1] - first, curve[-1][0]
    return replace(
        template,
        figures={
            "records_per_s": copied / took_s,
            "second_half_records_per_s": second_half_rate(curve),
            "cpu_us_per_record": cpu_s / copied * 1e6,
            "start_s": start_s,
            "copied": copied,
            "took_s": took_s,
            "cpu_s": cpu_s,
        },
        curve=tuple((round(at, 3), found) for at, found in curve),
    )


def wait_for_exactly(ends: EndOffsets, process: SystemProcess, records: int) -> None:
    """Wait until the target has these records. Blocks. Raises LabError if it has more or fewer."""
    wait_for_records(ends, process, records, ALL_RECORDS_S, POLL_INTERVAL_S)
    time.sleep(FURTHER_RECORDS_S)
    if (found := ends.total_records()) != records:
        raise LabError(f"{process.system} copied {found:,} records instead of {records:,}")


def second_half_rate(curve: Sequence[tuple[float, float]]) -> float:
    """Return the records per second in the second half of the time, when a JVM is warm."""
    end_s, records = curve[-1]
    begin_s, before = next(point for point in curve if point[0] >= end_s / 2)
    return (records - before) / (end_s - begin_s) if end_s > begin_s else 0.0


def scaled(workload: Workload, scale: Scale) -> Workload:
    """Return the workload with the number of records of a scale."""
    return replace(workload, records=int(workload.records * scale.share))


def run_s(system: System, scale: Scale) -> float:
    """Return the expected duration of one run."""
    window_s = scale.window_s if system is not System.SPARKMIRROR else scale.window_s / 4
    return _OVERHEAD_S[system] + window_s
