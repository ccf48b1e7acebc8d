"""Measures a Connect worker with 1, 5, 20 and 50 idle source connectors.

Java's worker and sparkmirror's get the same requests. Each connector copies one topic of its own,
with one record.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.connect_worker import (
    ConnectWorker,
    free_port,
    source_connector_config,
    worker_properties,
)
from bench.end_offsets import EndOffsets
from bench.flow import Flow
from bench.scale import Scale
from bench.session import BenchSession, rotated_systems
from bench.systems import System
from bench.workloads import Workload
from sparkmirror.errors import LabError

NAME = "connectors"
WORKLOAD = Workload(name="idle", title="idle", value_bytes=100, batch_bytes=1, records=1)
SYSTEMS = (System.MM2_DEFAULT, System.SPARKMIRROR)
COUNTS = (1, 5, 20, 50)
"""The numbers of connectors at which the worker is measured."""
COPY_TIMEOUT_S = 600.0
POLL_INTERVAL_S = 0.05
SETTLE_S = 20.0
_OPEN_S = 25.0
_CREATE_S = 30.0


class IdleSample(NamedTuple):
    """What a worker needs with so many idle connectors."""

    connectors: int
    memory_bytes: int
    processes: int
    cpu_share: float
    """Processor seconds per second."""
    first_record_s: float
    """From the PUT of the last connector to its first copied record."""


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + scale.rounds * len(SYSTEMS) * _run_s(scale)


def run(session: BenchSession) -> None:
    """Measure both workers in each round."""
    topics = [f"idle-{number}" for number in range(1, COUNTS[-1] + 1)]
    with running_clusters(session.reaper, session.show_status) as clusters:
        with session.step(f"making {len(topics)} topics", _OPEN_S):
            for topic in topics:
                clusters.fill_source_topic(topic, WORKLOAD, 1)
        for number in range(session.scale.rounds):
            for system in rotated_systems(number):
                if system not in SYSTEMS:
                    continue
                template = BenchRun(
                    bench=NAME, workload=WORKLOAD.name, who=system, round=number + 1
                )

                def measure(template: BenchRun = template) -> BenchRun:
                    return _measure(template, clusters, topics, session.scale.idle_s)

                session.measure(template, measure, _run_s(session.scale))


def figures_of(samples: Sequence[IdleSample]) -> dict[str, float]:
    """Return the figures of a run: each sample's, and what a further connector costs. Pure."""
    first, second, last = samples[0], samples[1], samples[-1]
    figures: dict[str, float] = {
        f"{name}_{sample.connectors}": getattr(sample, name)
        for sample in samples
        for name in IdleSample._fields[1:]
    }
    return figures | {
        "bytes_per_connector": (last.memory_bytes - first.memory_bytes)
        / (last.connectors - first.connectors),
        # The second sample, because a worker may start one process for each core.
        "further_processes": last.processes - second.processes,
    }


def _measure(
    template: BenchRun, clusters: BenchClusters, topics: list[str], idle_s: float
) -> BenchRun:
    flow = clusters.flow(topics, 1)
    properties = worker_properties(flow.target, f"{flow.alias}-workers", free_port())
    directory = clusters.directory / f"{flow.alias}-{template.who}"
    with clusters.running_worker(template.who, properties, directory) as worker:
        start_s = worker.wait_until_ready()
        connectors = _Connectors(worker, flow, clusters)
        samples = [connectors.sample(count, idle_s) for count in COUNTS]
    return replace(template, figures={"start_s": start_s, **figures_of(samples)})


@dataclass(slots=True)
class _Connectors:
    """The connectors of a worker: number n copies the topic n of the flow."""

    worker: ConnectWorker
    flow: Flow
    clusters: BenchClusters
    created: int = 0

    def sample(self, count: int, idle_s: float) -> IdleSample:
        """Create connectors until there are `count`, and measure the worker when it is idle."""
        for _ in range(self.created, count - 1):
            self._create()
        self._wait_until_copied(self.created)
        begun = time.monotonic()
        self._create()
        self._wait_until_copied(count)
        first_record_s = time.monotonic() - begun
        time.sleep(SETTLE_S)
        tree = self.worker.tree
        begun, cpu_s = time.monotonic(), tree.cpu_s()
        time.sleep(idle_s)
        took_s, cpu_s = time.monotonic() - begun, tree.cpu_s() - cpu_s
        self.worker.ensure_running()
        return IdleSample(
            connectors=count,
            memory_bytes=tree.memory_bytes(),
            processes=tree.process_count(),
            cpu_share=cpu_s / took_s,
            first_record_s=first_record_s,
        )

    def _create(self) -> None:
        flow, topic = self.flow, self.flow.topics[self.created]
        self.worker.put_connector(
            f"{flow.alias}-{topic}",
            source_connector_config(flow.alias, flow.source, flow.target, topic),
        )
        self.created += 1

    def _wait_until_copied(self, connectors: int) -> None:
        """Wait until each connector has copied its record."""
        ends = EndOffsets(self.clusters.target.access(), self.flow.remote_partitions[:connectors])
        deadline = time.monotonic() + COPY_TIMEOUT_S
        try:
            while (found := ends.total_records()) < connectors:
                self.worker.ensure_running()
                if time.monotonic() > deadline:
                    raise LabError(
                        f"{found} of {connectors} connectors of {self.worker.system} have copied"
                        f" their record in {COPY_TIMEOUT_S:.0f} s"
                    )
                time.sleep(POLL_INTERVAL_S)
        finally:
            ends.close()


def _run_s(scale: Scale) -> float:
    return _CREATE_S + len(COUNTS) * (SETTLE_S + scale.idle_s)
