"""Measures the copy of one partition with a round trip time of 100 ms to the source."""

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
    """Return the expected duration of this part."""
    return _OPEN_S + scale.rounds * sum(_run_s(system, scale) for system in System)


def run(session: BenchSession) -> None:
    """Measure each system in each round."""
    owner = Path(tempfile.mkdtemp(prefix="sparkmirror-line-"))
    session.reaper.remove_on_exit(owner)
    port = PortRegistry().claim(1, owner)[0]
    workload = replace(WORKLOAD, records=int(WORKLOAD.records * session.scale.share))
    with running_clusters(
        session.reaper, session.show_status, advertised=f"127.0.0.1:{port}"
    ) as clusters:
        with (
            session.step(f"filling a topic: {workload.title}", _OPEN_S),
            delayed_source(clusters, port, 0),
        ):
            records = clusters.fill_source_topic(workload.name, workload, partitions=1)
        with delayed_source(clusters, port, ROUND_TRIP_MS):
            for number in range(session.scale.rounds):
                for system in rotated_systems(number):
                    template = BenchRun(
                        bench=NAME, workload=workload.name, who=system, round=number + 1
                    )

                    def measure(template: BenchRun = template) -> BenchRun:
                        flow = clusters.flow([workload.name], 1)
                        return run_and_measure(
                            template, clusters, flow, records, session.scale.window_s
                        )

                    session.measure(template, measure, _run_s(system, session.scale))
    PortRegistry().release(owner)


@contextmanager
def delayed_source(clusters: BenchClusters, port: int, round_trip_ms: float) -> Iterator[None]:
    """Run a delay proxy in front of the source during the block."""
    host, _, broker_port = clusters.source.bootstrap_servers().rpartition(":")
    reaper: ProcessReaper = clusters.reaper
    process = reaper.launch(
        [
            *(sys.executable, "-m", "bench.delay_proxy"),
            *(str(port), host, broker_port, str(round_trip_ms)),
        ],
        log=clusters.directory / "line.log",
        cwd=ROOT,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait_for_exit(5)


def _run_s(system: System, scale: Scale) -> float:
    return _OVERHEAD_S[system] + scale.window_s
