"""How long a record is on its way when there is little to do: 1,000 records a second, evenly.

One process writes to the source, one reads from the target, and each record carries the moment it
was sent. What counts lies in the window after everything has warmed up. In full the window is as
long as an epoch, so one change of epochs falls into it.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.end_offsets import EndOffsets, wait_for_records
from bench.latency_consumer import Arrival, read_arrivals
from bench.run_statistics import percentile
from bench.scale import Scale
from bench.session import BenchSession
from bench.system_process import SystemProcess
from bench.systems import ROOT, System
from bench.workloads import Workload
from sparkmirror.errors import LabError

NAME = "latency"
WORKLOAD = "1000-per-s"
PARTITIONS = 4
PER_SECOND = 1000
WARM_UP_S = 20.0
PLAIN_LOOP_S = 60.0
"""The loop by hand has no epochs to wait for."""
SYSTEMS = (System.PLAIN_LOOP, System.MM2_DEFAULT, System.SPARKMIRROR)
"""The loop first: it warms both brokers up for the others."""
FIRST_RECORD_S = 120.0
_OPEN_S = 10.0
_OVERHEAD_S = 20.0
_NS = 1_000_000_000
_END_S = 30.0
FIRST_RECORDS = Workload(name="first", title="first", value_bytes=100, batch_bytes=1, records=1)
"""A record in each partition shows when a mirror has begun; the steady ones come after that."""
SPARE_S = 30
LAST_RECORD_S = 2.0


def expected_s(scale: Scale) -> float:
    """About how long all of it takes."""
    return _OPEN_S + sum(_run_s(who, scale) for who in SYSTEMS)


def run(desk: BenchSession) -> None:
    """Once for each contestant."""
    with running_clusters(desk.guard, desk.show_status) as stage:
        for who in SYSTEMS:
            blank = BenchRun(bench=NAME, workload=WORKLOAD, who=who, round=1)

            def measure(blank: BenchRun = blank) -> BenchRun:
                return _measure(blank, stage, _window_s(blank.who, desk.scale))

            desk.measure(blank, measure, _run_s(who, desk.scale))


def summary(arrivals: Sequence[Arrival], sent: int) -> dict[str, float]:
    """Percentiles of the ways, in milliseconds. `sent` is how many there should be."""
    ways = sorted((arrival.received_ns - arrival.sent_ns) / 1e6 for arrival in arrivals)
    if not ways:
        raise LabError("no record arrived in the window")
    return {
        "p50_ms": percentile(ways, 50),
        "p90_ms": percentile(ways, 90),
        "p99_ms": percentile(ways, 99),
        "p999_ms": percentile(ways, 99.9),
        "max_ms": ways[-1],
        "records": float(len(ways)),
        "missing": float(sent - len(ways)),
    }


def max_latency_by_second(
    arrivals: Sequence[Arrival], begun_ns: int
) -> tuple[tuple[float, float], ...]:
    """The longest way of each second, in milliseconds: it shows when something happened."""
    worst: dict[int, float] = defaultdict(float)
    for arrival in arrivals:
        second = (arrival.sent_ns - begun_ns) // _NS
        worst[second] = max(worst[second], (arrival.received_ns - arrival.sent_ns) / 1e6)
    return tuple((float(second), round(way, 2)) for second, way in sorted(worst.items()))


def _measure(blank: BenchRun, stage: BenchClusters, window_s: float) -> BenchRun:
    flow = stage.flow([f"steady-{blank.who}"], PARTITIONS)
    topic = flow.topics[0]
    stage.fill_source_topic(topic, FIRST_RECORDS, PARTITIONS)
    try:
        with stage.running_system(blank.who, flow) as racer:
            ends = EndOffsets(stage.target.access(), flow.remote_partitions)
            wait_for_records(ends, racer, PARTITIONS, FIRST_RECORD_S, 0.2)
            ends.close()
            seconds = int(WARM_UP_S + window_s) + SPARE_S
            with _program(
                stage, "bench.paced_producer", flow.source, topic, PARTITIONS, PER_SECOND, seconds
            ):
                return _observe(blank, stage, racer, window_s)
    finally:
        stage.delete_source_topics([topic])


def _observe(
    blank: BenchRun, stage: BenchClusters, racer: SystemProcess, window_s: float
) -> BenchRun:
    """Read what arrives; of that, count what was sent in the window."""
    file = stage.directory / f"arrivals-{racer.flow.alias}"
    remote = racer.flow.remote_topic(racer.flow.topics[0])
    with _program(stage, "bench.latency_consumer", racer.flow.target, remote, PARTITIONS, file):
        time.sleep(WARM_UP_S)
        begun_ns, cpu_s = time.time_ns(), racer.tree.cpu_s()
        _sleep_while_running(racer, window_s)
        ended_ns, cpu_s = time.time_ns(), racer.tree.cpu_s() - cpu_s
        time.sleep(LAST_RECORD_S)
    counted = [one for one in read_arrivals(file) if begun_ns <= one.sent_ns < ended_ns]
    sent = round((ended_ns - begun_ns) / _NS * PER_SECOND)
    figures = summary(counted, sent) | {"cpu_share": cpu_s / window_s, "window_s": window_s}
    return replace(blank, figures=figures, curve=max_latency_by_second(counted, begun_ns))


def _sleep_while_running(racer: SystemProcess, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        racer.ensure_running()
        time.sleep(min(left, 1.0))


@contextmanager
def _program(stage: BenchClusters, module: str, *arguments: object) -> Iterator[None]:
    """Run one of our two programs; when the block ends it ends in good order."""
    process = stage.guard.launch(
        [sys.executable, "-m", module, *(str(argument) for argument in arguments)],
        log=stage.directory / f"{module}.log",
        cwd=ROOT,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait_for_exit(_END_S)


def _window_s(who: System, scale: Scale) -> float:
    return min(scale.latency_s, PLAIN_LOOP_S) if who is System.PLAIN_LOOP else scale.latency_s


def _run_s(who: System, scale: Scale) -> float:
    return _OVERHEAD_S + WARM_UP_S + _window_s(who, scale)
