"""Measures the latency at a steady rate of 1,000 records per second.

One process writes to the source, another one reads from the target. Each record holds the time at
which it was sent. Only records of the window after the warm-up count. At full scale the window is
as long as an epoch, so that one change of epochs falls into it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.end_offsets import EndOffsets, wait_for_records
from bench.latency_consumer import Arrival, read_arrivals
from bench.record_headers import is_kept
from bench.run_statistics import percentile
from bench.scale import Scale
from bench.session import BenchSession
from bench.system_process import SystemProcess
from bench.systems import System
from bench.transform_chain import TransformChain
from bench.workloads import Workload
from sparkmirror.errors import LabError

NAME = "latency"
WORKLOAD = "1000-per-s"
PARTITIONS = 4
PER_SECOND = 1000
LINGER_MS = 0
VALUE_BYTES = 1000
WARM_UP_S = 20.0
PLAIN_LOOP_S = 60.0
"""The plain loop has no epochs, so a shorter window is enough."""
SYSTEMS = (System.PLAIN_LOOP, System.MM2_DEFAULT, System.SPARKMIRROR)
"""The plain loop runs first: it warms up both brokers for the others."""
FIRST_RECORD_S = 120.0
_OPEN_S = 10.0
_OVERHEAD_S = 20.0
_NS = 1_000_000_000
FIRST_RECORDS = Workload(name="first", title="first", value_bytes=100, batch_bytes=1, records=1)
"""One record for each partition: their copies show that the system has started."""
SPARE_S = 30
LAST_RECORD_S = 2.0


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + sum(run_s(_window_s(system, scale)) for system in SYSTEMS)


def run(session: BenchSession) -> None:
    """Measure each system once."""
    with running_clusters(session.reaper, session.show_status) as clusters:
        for system in SYSTEMS:
            template = BenchRun(bench=NAME, workload=WORKLOAD, who=system, round=1)

            def measure(template: BenchRun = template) -> BenchRun:
                return measure_latency(template, clusters, _window_s(template.who, session.scale))

            session.measure(template, measure, run_s(_window_s(system, session.scale)))


def summary(arrivals: Sequence[Arrival], sent: int) -> dict[str, float]:
    """Return percentiles of the latencies in milliseconds. `sent` is the number of sent records."""
    latencies = sorted((arrival.received_ns - arrival.sent_ns) / 1e6 for arrival in arrivals)
    if not latencies:
        raise LabError("no record arrived in the window")
    return _percentiles(latencies) | {
        "records": float(len(latencies)),
        "missing": float(sent - len(latencies)),
    }


def mirror_summary(
    arrivals: Sequence[Arrival], acknowledged_ns: Mapping[int, int]
) -> dict[str, float]:
    """Return percentiles of the latencies without the producer's share, in milliseconds.

    They count from the moment at which the producer learned that the source has the record;
    `acknowledged_ns` has it by the time of sending.
    """
    latencies = sorted(
        (arrival.received_ns - acknowledged_ns[arrival.sent_ns]) / 1e6
        for arrival in arrivals
        if arrival.sent_ns in acknowledged_ns
    )
    if not latencies:
        raise LabError("no record of the window was acknowledged")
    return {f"mirror_{name}": value for name, value in _percentiles(latencies).items()}


def _percentiles(latencies: Sequence[float]) -> dict[str, float]:
    """`latencies` are in ascending order."""
    return {
        "p50_ms": percentile(latencies, 50),
        "p90_ms": percentile(latencies, 90),
        "p99_ms": percentile(latencies, 99),
        "p999_ms": percentile(latencies, 99.9),
        "max_ms": latencies[-1],
    }


def max_latency_by_second(
    arrivals: Sequence[Arrival], begun_ns: int
) -> tuple[tuple[float, float], ...]:
    """Return pairs of second and highest latency in that second, in milliseconds."""
    highest: dict[int, float] = defaultdict(float)
    for arrival in arrivals:
        second = (arrival.sent_ns - begun_ns) // _NS
        highest[second] = max(highest[second], (arrival.received_ns - arrival.sent_ns) / 1e6)
    return tuple((float(second), round(latency, 2)) for second, latency in sorted(highest.items()))


def measure_latency(
    template: BenchRun,
    clusters: BenchClusters,
    window_s: float,
    *,
    chain: TransformChain | None = None,
    header_share: int | None = None,
    all_connectors: bool = False,
    epoch_s: float | None = None,
) -> BenchRun:
    """Start a system, measure its latency and stop it. Blocks.

    With a `header_share` records have the headers of `bench.record_headers`.
    """
    flow = clusters.flow(
        [f"steady-{template.who}"],
        PARTITIONS,
        chain=chain,
        all_connectors=all_connectors,
        epoch_s=epoch_s,
    )
    topic = flow.topics[0]
    clusters.fill_source_topic(topic, FIRST_RECORDS, PARTITIONS)
    try:
        with clusters.running_system(template.who, flow) as process:
            ends = EndOffsets(clusters.target.access(), flow.remote_partitions)
            wait_for_records(ends, process, PARTITIONS, FIRST_RECORD_S, 0.2)
            ends.close()
            seconds = int(WARM_UP_S + window_s) + SPARE_S
            file = clusters.directory / f"acknowledgements-{flow.alias}"
            with clusters.running_program(
                "bench.paced_producer",
                flow.source,
                topic,
                file,
                PARTITIONS,
                PER_SECOND,
                seconds,
                LINGER_MS,
                VALUE_BYTES,
                *(() if header_share is None else (header_share,)),
            ):
                return _observe(template, clusters, process, window_s, kept_share(header_share))
    finally:
        clusters.delete_source_topics([topic])


def kept_share(header_share: int | None) -> float:
    """Return the share of sent records that Filter does not leave out."""
    if header_share is None:
        return 1.0
    return sum(is_kept(number, header_share) for number in range(100)) / 100


def _observe(
    template: BenchRun,
    clusters: BenchClusters,
    process: SystemProcess,
    window_s: float,
    kept: float,
) -> BenchRun:
    """Consume the copied records; return the figures of those that were sent in the window."""
    file = clusters.directory / f"arrivals-{process.flow.alias}"
    remote = process.flow.remote_topic(process.flow.topics[0])
    with clusters.running_program(
        "bench.latency_consumer", process.flow.target, remote, PARTITIONS, file
    ):
        time.sleep(WARM_UP_S)
        begun_ns, cpu_s = time.time_ns(), process.tree.cpu_s()
        _sleep_while_running(process, window_s)
        ended_ns, cpu_s = time.time_ns(), process.tree.cpu_s() - cpu_s
        time.sleep(LAST_RECORD_S)
    counted = [arrival for arrival in read_arrivals(file) if begun_ns <= arrival.sent_ns < ended_ns]
    sent = round((ended_ns - begun_ns) / _NS * PER_SECOND * kept)
    figures = summary(counted, sent) | {"cpu_share": cpu_s / window_s, "window_s": window_s}
    return replace(template, figures=figures, curve=max_latency_by_second(counted, begun_ns))


def _sleep_while_running(process: SystemProcess, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        process.ensure_running()
        time.sleep(min(left, 1.0))


def _window_s(system: System, scale: Scale) -> float:
    return min(scale.latency_s, PLAIN_LOOP_S) if system is System.PLAIN_LOOP else scale.latency_s


def run_s(window_s: float) -> float:
    """Return the expected duration of one run with a window."""
    return _OVERHEAD_S + WARM_UP_S + window_s
