"""Measures dedicated mode with all three connectors at steady rates.

`sparkmirror run` and `connect-mirror-maker` get the same `mm2.properties`. A workload is a rate,
a number of partitions and the linger of the producers. A system starts once for all rates over the
same partitions: first comes the time to its first record, then processor time, memory and latency
at each rate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.end_offsets import EndOffsets, wait_for_records
from bench.flow import Flow
from bench.latency import (
    FIRST_RECORD_S,
    FIRST_RECORDS,
    LAST_RECORD_S,
    SPARE_S,
    mirror_summary,
    summary,
)
from bench.latency_consumer import Arrival, read_arrivals, read_pairs
from bench.scale import Scale
from bench.session import BenchSession
from bench.steady_rates import RATE_GROUPS, RATES, SteadyRate
from bench.system_process import SystemProcess
from bench.systems import System

NAME = "steady"
SYSTEMS = (System.MM2_DEFAULT, System.SPARKMIRROR)
ROUNDS = 2
"""At most: in the second round the other system comes first."""
VALUE_BYTES = 200
BROKERS_WARM_UP_S = 20.0
WARM_UP_S = 30.0
"""Java's compiler and sparkmirror's short first epoch are over then."""
RATE_WARM_UP_S = 10.0
"""Before the window of each further rate."""
MEMORY_INTERVAL_S = 10.0
FIRST_RECORD_INTERVAL_S = 0.1
_OPEN_S = 15.0
_START_S = 30.0
_RATE_OVERHEAD_S = 5.0
_NS = 1_000_000_000


WORKLOAD_NAMES = tuple(f"{NAME}-{rate.name}" for rate in RATES)


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    systems = len(SYSTEMS) * min(scale.rounds, ROUNDS)
    starts = len(RATE_GROUPS) * (_START_S + WARM_UP_S)
    return _OPEN_S + BROKERS_WARM_UP_S + systems * (starts + len(RATES) * _rate_s(scale))


def run(session: BenchSession) -> None:
    """Measure both systems at each rate, one after the other."""
    with running_clusters(session.reaper, session.show_status) as clusters:
        with session.step("warming both clusters up", BROKERS_WARM_UP_S):
            _warm_up_brokers(clusters)
        for number in range(min(session.scale.rounds, ROUNDS)):
            for place, group in enumerate(RATE_GROUPS):
                rates = [rate for rate in group if session.includes(f"{NAME}-{rate.name}")]
                for system in SYSTEMS if (place + number) % 2 else SYSTEMS[::-1]:
                    _run_system(session, clusters, rates, number + 1, system)


def _run_system(
    session: BenchSession,
    clusters: BenchClusters,
    rates: Sequence[SteadyRate],
    number: int,
    system: System,
) -> None:
    """Measure a system at some rates over the same partitions. The first rate has its start."""
    started: list[SystemProcess] = []
    with ExitStack() as stack:
        for rate in rates:
            template = BenchRun(bench=NAME, workload=rate.name, who=system, round=number)

            def measure(template: BenchRun = template, rate: SteadyRate = rate) -> BenchRun:
                if started:
                    figures = {}
                else:
                    flow = stack.enter_context(steady_flow(clusters, system, rate))
                    process = stack.enter_context(clusters.running_system(system, flow))
                    figures = {"start_s": _await_records(clusters, process)}
                    started.append(process)
                warm_up_s = WARM_UP_S if figures else RATE_WARM_UP_S
                window_s = session.scale.steady_s
                figures |= _measure(clusters, started[0], rate, warm_up_s, window_s)
                return replace(template, figures=figures)

            start_s = 0.0 if rate is not rates[0] else _START_S + WARM_UP_S
            session.measure(template, measure, start_s + _rate_s(session.scale))


def _warm_up_brokers(clusters: BenchClusters) -> None:
    """Write single records for some time: the first system would have brokers that are slow yet."""
    rate, topic = SteadyRate(per_second=10_000, topics=1, partitions=4), "warm-up"
    flow = clusters.flow([topic], rate.partitions)
    backwards = replace(flow, source=flow.target, target=flow.source)
    clusters.fill_source_topic(topic, FIRST_RECORDS, rate.partitions)
    with clusters.target_topic(topic, rate.partitions):
        for one in (flow, backwards):
            with producing(clusters, one, rate, int(BROKERS_WARM_UP_S)):
                time.sleep(BROKERS_WARM_UP_S / 2)
    clusters.delete_source_topics([topic])


def _await_records(clusters: BenchClusters, process: SystemProcess) -> float:
    """Wait for a record in each partition; return how long the first one took from the start."""
    partitions = process.flow.remote_partitions
    ends = EndOffsets(clusters.target.access(), partitions)
    wait_for_records(ends, process, 1, FIRST_RECORD_S, FIRST_RECORD_INTERVAL_S)
    start_s = process.tree.age_s()
    wait_for_records(ends, process, len(partitions), FIRST_RECORD_S, FIRST_RECORD_INTERVAL_S)
    ends.close()
    return start_s


def _measure(
    clusters: BenchClusters,
    process: SystemProcess,
    rate: SteadyRate,
    warm_up_s: float,
    window_s: float,
) -> dict[str, float]:
    """Return the figures of a running system at one rate."""
    with producing(clusters, process.flow, rate, int(warm_up_s + window_s)) as file:
        counted, figures = _observe(clusters, process, rate, warm_up_s, window_s)
    return figures | mirror_summary(counted, dict(read_pairs(file)))


@contextmanager
def steady_flow(clusters: BenchClusters, system: System, rate: SteadyRate) -> Iterator[Flow]:
    """Create the topics of a rate with a record in each partition; delete them after the block."""
    topics = [f"{rate.name}-{system}-{number}" for number in range(rate.topics)]
    for topic in topics:
        clusters.fill_source_topic(topic, FIRST_RECORDS, rate.partitions)
    try:
        yield clusters.flow(topics, rate.partitions, all_connectors=True)
    finally:
        clusters.delete_source_topics(topics)


@contextmanager
def producing(
    clusters: BenchClusters, flow: Flow, rate: SteadyRate, seconds: int
) -> Iterator[Path]:
    """Produce at a rate during the block, for these seconds and some to spare.

    After the block the file that this returns has the acknowledgements.
    """
    file = clusters.directory / f"acknowledgements-{flow.alias}"
    with clusters.running_program(
        "bench.paced_producer",
        flow.source,
        ",".join(flow.topics),
        file,
        rate.partitions,
        rate.per_second,
        seconds + SPARE_S,
        rate.linger_ms,
        VALUE_BYTES,
    ):
        yield file


def _observe(
    clusters: BenchClusters,
    process: SystemProcess,
    rate: SteadyRate,
    warm_up_s: float,
    window_s: float,
) -> tuple[list[Arrival], dict[str, float]]:
    """Return the arrivals of the window after the warm-up, and its figures."""
    flow = process.flow
    file = clusters.directory / f"arrivals-{flow.alias}"
    remote = ",".join(flow.remote_topic(topic) for topic in flow.topics)
    with clusters.running_program(
        "bench.latency_consumer", flow.target, remote, rate.partitions, file
    ):
        time.sleep(warm_up_s)
        begun_ns, cpu_s = time.time_ns(), process.tree.cpu_s()
        memory = []
        until = time.monotonic() + window_s
        while (left := until - time.monotonic()) > 0:
            process.ensure_running()
            memory.append(process.tree.memory_bytes())
            time.sleep(min(left, MEMORY_INTERVAL_S))
        ended_ns, cpu_s = time.time_ns(), process.tree.cpu_s() - cpu_s
        time.sleep(LAST_RECORD_S)
    counted = [arrival for arrival in read_arrivals(file) if begun_ns <= arrival.sent_ns < ended_ns]
    took_s = (ended_ns - begun_ns) / _NS
    return counted, {
        **summary(counted, round(took_s * rate.per_second)),
        "cpu_share": cpu_s / took_s,
        "memory_bytes": max(memory),
        "window_s": took_s,
    }


def _rate_s(scale: Scale) -> float:
    return _RATE_OVERHEAD_S + RATE_WARM_UP_S + scale.steady_s
