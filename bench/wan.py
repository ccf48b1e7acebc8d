"""One partition over a long line: the mirror stands beside the target, 100 ms from the source."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.scale import Scale
from bench.session import BenchSession, rotated_systems
from bench.systems import ROOT, System
from bench.throughput import run_and_measure
from bench.workloads import Workload
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.processes.process_reaper import ProcessReaper

NAME = "wan"
ROUND_TRIP_MS = 100.0
WORKLOAD = Workload(
    name="100-ms",
    title="1 KB, one partition",
    value_bytes=1000,
    batch_bytes=128 << 10,
    records=800_000,
)
_OVERHEAD_S = {
    System.MM2_DEFAULT: 18.0,
    System.MM2_TUNED: 18.0,
    System.PLAIN_LOOP: 5.0,
    System.SPARKMIRROR: 12.0,
}
_OPEN_S = 25.0


def expected_s(scale: Scale) -> float:
    """About how long all of it takes."""
    return _OPEN_S + scale.rounds * sum(_run_s(who, scale) for who in System)


def run(desk: BenchSession) -> None:
    """Every round, every contestant."""
    owner = Path(tempfile.mkdtemp(prefix="sparkmirror-line-"))
    desk.guard.remove_on_exit(owner)
    port = PortRegistry().claim(1, owner)[0]
    workload = replace(WORKLOAD, records=int(WORKLOAD.records * desk.scale.share))
    with running_clusters(desk.guard, desk.show_status, advertised=f"127.0.0.1:{port}") as stage:
        with (
            desk.step(f"filling a topic: {workload.title}", _OPEN_S),
            delayed_source(stage, port, 0),
        ):
            records = stage.fill_source_topic(workload.name, workload, partitions=1)
        with delayed_source(stage, port, ROUND_TRIP_MS):
            for number in range(desk.scale.rounds):
                for who in rotated_systems(number):
                    blank = BenchRun(bench=NAME, workload=workload.name, who=who, round=number + 1)

                    def measure(blank: BenchRun = blank) -> BenchRun:
                        flow = stage.flow([workload.name], 1)
                        return run_and_measure(blank, stage, flow, records, desk.scale.window_s)

                    desk.measure(blank, measure, _run_s(who, desk.scale))
    PortRegistry().release(owner)


@contextmanager
def delayed_source(stage: BenchClusters, port: int, round_trip_ms: float) -> Iterator[None]:
    """Put a line of some length before the source."""
    host, _, broker_port = stage.source.bootstrap_servers().rpartition(":")
    guard: ProcessReaper = stage.guard
    process = guard.launch(
        [
            *(sys.executable, "-m", "bench.delay_proxy"),
            *(str(port), host, broker_port, str(round_trip_ms)),
        ],
        log=stage.directory / "line.log",
        cwd=ROOT,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait_for_exit(5)


def _run_s(who: System, scale: Scale) -> float:
    return _OVERHEAD_S[who] + scale.window_s
