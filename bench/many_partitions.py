"""Measures one source connector with 10,000 partitions: its start, and its cost without records.

Only sparkmirror: the limits are absolute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.connect_worker import (
    ConnectWorker,
    free_port,
    source_connector_config,
    worker_properties,
)
from bench.scale import Scale
from bench.session import BenchSession
from bench.systems import System
from bench.topics import create_topic, make_router, write_batches
from bench.workloads import Workload
from sparkmirror.errors import LabError

NAME = "partitions"
TOPICS = 100
PARTITIONS = 100
MOVING = Workload(
    name="10000-partitions", title="one moves", value_bytes=100, batch_bytes=1, records=1
)
CONNECTOR = "many-partitions"
START_TIMEOUT_S = 600.0
POLL_INTERVAL_S = 0.5
SETTLE_S = 20.0
_LEASED = "leased"
_OPEN_S = 60.0
_OVERHEAD_S = 120.0


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + _run_s(scale)


def run(session: BenchSession) -> None:
    """Measure once."""
    topics = [f"wide-{number}" for number in range(TOPICS)]
    with running_clusters(session.reaper, session.show_status) as clusters:
        with session.step(f"making {TOPICS * PARTITIONS:,} partitions", _OPEN_S):
            for topic in topics:
                create_topic(clusters.source.access(), topic, PARTITIONS)
        template = BenchRun(bench=NAME, workload=MOVING.name, who=System.SPARKMIRROR, round=1)

        def measure() -> BenchRun:
            figures = _measure(clusters, topics, session.scale.idle_s, session.show_status)
            return replace(template, figures=figures)

        session.measure(template, measure, _run_s(session.scale))


def _measure(
    clusters: BenchClusters,
    topics: list[str],
    idle_s: float,
    show_status: Callable[[str], None],
) -> dict[str, float]:
    flow = clusters.flow(topics, PARTITIONS)
    properties = worker_properties(flow.target, f"{flow.alias}-workers", free_port())
    config = source_connector_config(flow.alias, flow.source, flow.target, "wide-.*")
    figures: dict[str, float] = {}
    state = clusters.directory / f"{flow.alias}-first"
    first = ConnectWorker(System.SPARKMIRROR, properties, state, clusters.reaper)
    try:
        first.wait_until_ready()
        begun = time.monotonic()
        first.put_connector(CONNECTOR, config)
        _wait_until(first, lambda: bool(first.request("GET", f"/connectors/{CONNECTOR}/tasks")[1]))
        figures["planned_s"] = time.monotonic() - begun
        _wait_until(first, lambda: _all_leased(first))
        figures["leased_s"] = time.monotonic() - begun
    finally:
        first.kill()
    show_status("starting the worker again: the remote topics exist")
    with clusters.running_worker(
        System.SPARKMIRROR, properties, clusters.directory / f"{flow.alias}-second", state
    ) as worker:
        figures["ready_again_s"] = worker.wait_until_ready()
        _wait_until(worker, lambda: _all_leased(worker))
        figures["leased_again_s"] = worker.tree.age_s()
        time.sleep(SETTLE_S)
        figures["memory_bytes"] = worker.tree.memory_bytes()
        figures["cpu_share_idle"] = _cpu_share(worker, idle_s, lambda: None)
        router = make_router(clusters.source.access())
        try:
            figures["cpu_share_one_moving"] = _cpu_share(
                worker, idle_s, lambda: write_batches(router, topics[0], MOVING, 1)
            )
        finally:
            router.close()
    return figures


def _all_leased(worker: ConnectWorker) -> bool:
    """Return whether all partitions have a lease; asks for all of them when the task is well."""
    _, task = worker.request("GET", f"/connectors/{CONNECTOR}/tasks/0/status")
    is_well = task.get("state") == "RUNNING" and not task.get("trace")
    return is_well and _leased(worker) == TOPICS * PARTITIONS


def _leased(worker: ConnectWorker) -> int:
    """Return how many partitions of the connector have a lease."""
    status, answer = worker.request("GET", f"/connectors/{CONNECTOR}/partitions")
    found = answer["partitions"] if status < 300 else []
    return sum(partition["state"] == _LEASED for partition in found)


def _cpu_share(worker: ConnectWorker, seconds: float, each_second: Callable[[], None]) -> float:
    """Return the processor seconds per second of a worker while something is done each second."""
    begun, cpu_s = time.monotonic(), worker.tree.cpu_s()
    while time.monotonic() - begun < seconds:
        each_second()
        time.sleep(1.0)
    return (worker.tree.cpu_s() - cpu_s) / (time.monotonic() - begun)


def _wait_until(worker: ConnectWorker, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not condition():
        worker.ensure_running()
        if time.monotonic() > deadline:
            raise LabError(f"{CONNECTOR} does not run after {START_TIMEOUT_S:.0f} s")
        time.sleep(POLL_INTERVAL_S)


def _run_s(scale: Scale) -> float:
    return _OVERHEAD_S + 2 * scale.idle_s
