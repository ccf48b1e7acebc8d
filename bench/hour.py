"""Measures whether processor time and memory stay flat over an hour of steady load."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.end_offsets import EndOffsets, wait_for_records
from bench.latency import FIRST_RECORD_S
from bench.scale import Scale
from bench.session import BenchSession
from bench.steady import WARM_UP_S, producing, steady_flow
from bench.steady_rates import HOUR_RATE
from bench.system_process import SystemProcess
from bench.systems import System

NAME = "hour"
RATE = HOUR_RATE
SAMPLES = 120
_PARTS = 6
"""The first and the last of so many parts are compared."""
_OPEN_S = 60.0
_POLL_INTERVAL_S = 0.5


class Sample(NamedTuple):
    """The processor time since the start and the memory in use, after some seconds."""

    at_s: float
    cpu_s: float
    memory_bytes: float


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + WARM_UP_S + scale.hour_s


def run(session: BenchSession) -> None:
    """Measure sparkmirror once."""
    with running_clusters(session.reaper, session.show_status) as clusters:
        template = BenchRun(bench=NAME, workload=RATE.name, who=System.SPARKMIRROR, round=1)

        def measure() -> BenchRun:
            return _measure(template, clusters, session.scale.hour_s)

        session.measure(template, measure, WARM_UP_S + session.scale.hour_s)


def growth(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the ratios of the last part of the samples to the first part, and their figures."""
    size = len(samples) // _PARTS
    assert size > 1, "the parts need two samples each"
    first, last = samples[:size], samples[-size:]
    cpu = [_cpu_share(part) for part in (first, last)]
    memory = [statistics.median(sample.memory_bytes for sample in part) for part in (first, last)]
    return {
        "cpu_share_first": cpu[0],
        "cpu_share_last": cpu[1],
        "cpu_growth": cpu[1] / cpu[0],
        "memory_bytes_first": memory[0],
        "memory_bytes_last": memory[1],
        "memory_growth": memory[1] / memory[0],
    }


def _cpu_share(part: Sequence[Sample]) -> float:
    return (part[-1].cpu_s - part[0].cpu_s) / (part[-1].at_s - part[0].at_s)


def _measure(template: BenchRun, clusters: BenchClusters, seconds: float) -> BenchRun:
    with (
        steady_flow(clusters, template.who, RATE) as flow,
        clusters.running_system(template.who, flow) as process,
    ):
        ends = EndOffsets(clusters.target.access(), flow.remote_partitions)
        wait_for_records(
            ends, process, len(flow.remote_partitions), FIRST_RECORD_S, _POLL_INTERVAL_S
        )
        ends.close()
        with producing(clusters, flow, RATE, int(WARM_UP_S + seconds)):
            time.sleep(WARM_UP_S)
            samples = _sample(process, seconds)
    curve = tuple((round(sample.at_s, 1), sample.memory_bytes) for sample in samples)
    return replace(template, figures={**growth(samples), "window_s": seconds}, curve=curve)


def _sample(process: SystemProcess, seconds: float) -> list[Sample]:
    begun, samples = time.monotonic(), []
    for number in range(SAMPLES + 1):
        time.sleep(max(0.0, begun + number * seconds / SAMPLES - time.monotonic()))
        process.ensure_running()
        at_s = time.monotonic() - begun
        samples.append(Sample(at_s, process.tree.cpu_s(), process.tree.memory_bytes()))
    return samples
