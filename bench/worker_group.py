"""Measures three workers with 200 connectors and 2,000 partitions while one of them dies.

Only sparkmirror: the limits are absolute. Requests go to the two workers that stay.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

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
from bench.run_statistics import percentile
from bench.scale import Scale
from bench.session import BenchSession
from bench.systems import System
from bench.topics import make_router, write_batches
from bench.workloads import Workload
from sparkmirror.errors import LabError

NAME = "group"
WORKERS = 3
CONNECTORS = 200
PARTITIONS = 10
"""The partitions of each connector's topic."""
WORKLOAD = Workload(
    name="200-connectors", title="one record", value_bytes=100, batch_bytes=1, records=PARTITIONS
)
TIMEOUT_S = 900.0
PROBE_INTERVAL_S = 0.05
CLIENT_START_S = 3.0
"""The clients' own start is over then, so that it is not measured with the death of a worker."""
SETTLE_S = 10.0
"""How long requests are measured after the rebalance has ended."""
_RUNNING = "RUNNING"
_READ_CONFIGS = re.compile(r"^\[([^]]+)] INFO (?:Topic|Read) .*-configs\b", re.MULTILINE)
_HERDER_STARTS = re.compile(r"^\[([^]]+)] INFO .*Herder starting", re.MULTILINE)
_OPEN_S = 60.0
_RUN_S = 300.0


class RestRequest(NamedTuple):
    """A request of `bench.paced_rest_client`, and how late the client woke up before it."""

    duration_ms: float
    late_ms: float


def expected_s(_: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + _RUN_S


def run(session: BenchSession) -> None:
    """Measure once."""
    topics = [f"group-{number}" for number in range(CONNECTORS)]
    with running_clusters(session.reaper, session.show_status) as clusters:
        with session.step(f"making {CONNECTORS * PARTITIONS:,} partitions", _OPEN_S):
            for topic in topics:
                clusters.fill_source_topic(topic, WORKLOAD, PARTITIONS)
        template = BenchRun(bench=NAME, workload=WORKLOAD.name, who=System.SPARKMIRROR, round=1)

        def measure() -> BenchRun:
            return replace(template, figures=_measure(clusters, topics, session.show_status))

        session.measure(template, measure, _RUN_S)


def is_running_on(statuses: Mapping[str, Any], workers: Sequence[str], connectors: int) -> bool:
    """Whether all connectors and their tasks run on these workers. Pure.

    `statuses` is the answer of `GET /connectors?expand=status`.
    """
    states = [
        (one["state"], one["worker_id"])
        for answer in statuses.values()
        for one in (answer["status"]["connector"], *answer["status"]["tasks"])
    ]
    has_all_tasks = all(answer["status"]["tasks"] for answer in statuses.values())
    return (
        len(statuses) == connectors
        and has_all_tasks
        and all(state == _RUNNING and worker in workers for state, worker in states)
    )


def request_figures(requests: Sequence[RestRequest]) -> dict[str, float]:
    """Return the figures of requests. Pure."""
    durations = sorted(one.duration_ms for one in requests)
    late = sorted(one.late_ms for one in requests)
    return {
        "requests": float(len(requests)),
        "rest_p50_ms": percentile(durations, 50),
        "rest_p99_ms": percentile(durations, 99),
        "rest_max_ms": durations[-1],
        "wake_up_p99_ms": percentile(late, 99),
    }


def config_read_s(log: str) -> float:
    """Return the seconds from the start of the herder until it has read the config topic. Pure."""
    begun, read = _HERDER_STARTS.search(log), _READ_CONFIGS.search(log)
    if not begun or not read:
        raise LabError("the worker's log does not say that it has read its config topic")
    return (_log_time(read[1]) - _log_time(begun[1])).total_seconds()


def _log_time(text: str) -> datetime:
    return datetime.strptime(f"{text} +0000", "%Y-%m-%d %H:%M:%S,%f %z")


def _measure(
    clusters: BenchClusters, topics: list[str], show_status: Callable[[str], None]
) -> dict[str, float]:
    flow = clusters.flow(topics, PARTITIONS)
    group = f"{flow.alias}-workers"
    figures: dict[str, float] = {}
    with ExitStack() as stack:

        def start_worker(number: int) -> ConnectWorker:
            properties = worker_properties(flow.target, group, free_port())
            directory = clusters.directory / f"{flow.alias}-worker{number}"
            return stack.enter_context(
                clusters.running_worker(System.SPARKMIRROR, properties, directory)
            )

        workers = [start_worker(number) for number in range(WORKERS)]
        for worker in workers:
            worker.wait_until_ready()
        addresses = [worker.address for worker in workers]
        show_status(f"creating {CONNECTORS} connectors")
        begun = time.monotonic()
        for topic in topics:
            config = source_connector_config(flow.alias, flow.source, flow.target, topic)
            workers[0].put_connector(f"{flow.alias}-{topic}", config)
        figures["create_s"] = time.monotonic() - begun
        _wait_until_running(workers[0], addresses)
        _wait_for_records(clusters, flow, 1)
        figures["all_copied_s"] = time.monotonic() - begun
        figures["memory_bytes"] = sum(worker.tree.memory_bytes() for worker in workers)
        show_status("killing a worker")
        with _probing(clusters, workers[:2], flow) as requests:
            begun = time.monotonic()
            workers[2].kill()
            with ThreadPoolExecutor(1) as writer:
                writing = writer.submit(_write_again, clusters, topics)
                _wait_until_running(workers[0], addresses[:2])
                figures["rebalance_s"] = time.monotonic() - begun
                writing.result()
            _wait_for_records(clusters, flow, 2)
            figures["all_copied_again_s"] = time.monotonic() - begun
            time.sleep(SETTLE_S)
        figures |= request_figures(requests)
        show_status("starting another worker")
        joined = start_worker(WORKERS)
        figures["joined_ready_s"] = joined.wait_until_ready()
        figures["configs_read_s"] = config_read_s(joined.log_text())
    return figures


def _wait_until_running(worker: ConnectWorker, addresses: Sequence[str]) -> None:
    """Wait until all connectors and tasks run on these workers."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        status, answer = worker.request("GET", "/connectors?expand=status")
        if status == http.HTTPStatus.OK and is_running_on(answer, addresses, CONNECTORS):
            return
        if time.monotonic() > deadline:
            raise LabError(f"not all connectors run after {TIMEOUT_S:.0f} s: {status}")
        time.sleep(0.5)


def _wait_for_records(clusters: BenchClusters, flow: Flow, per_partition: int) -> None:
    """Wait until each partition of the target has so many records."""
    wanted = per_partition * len(flow.remote_partitions)
    ends = EndOffsets(clusters.target.access(), flow.remote_partitions)
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while (found := ends.total_records()) < wanted:
            if time.monotonic() > deadline:
                raise LabError(f"{found:,} of {wanted:,} records are copied")
            time.sleep(0.25)
    finally:
        ends.close()


def _write_again(clusters: BenchClusters, topics: Sequence[str]) -> None:
    """Write one more record to each partition of the source."""
    router = make_router(clusters.source.access())
    try:
        for topic in topics:
            write_batches(router, topic, WORKLOAD, PARTITIONS)
    finally:
        router.close()


@contextmanager
def _probing(
    clusters: BenchClusters, workers: Sequence[ConnectWorker], flow: Flow
) -> Iterator[list[RestRequest]]:
    """Send read requests to these workers in the block; the list gets them after it."""
    paths = [f"/connectors/{flow.alias}-{topic}/{part}"
             for topic in flow.topics for part in ("status", "config", "tasks")]  # fmt: skip
    paths_file = clusters.directory / f"{flow.alias}-paths"
    paths_file.write_text("\n".join(["/connectors", *paths]), encoding="utf-8")
    requests: list[RestRequest] = []
    files = [clusters.directory / f"{flow.alias}-durations{n}" for n in range(len(workers))]
    with ExitStack() as stack:
        for worker, file in zip(workers, files, strict=True):
            arguments = (worker.address, PROBE_INTERVAL_S, paths_file, file)
            stack.enter_context(clusters.running_program("bench.paced_rest_client", *arguments))
        time.sleep(CLIENT_START_S)
        yield requests
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            requests.append(RestRequest(*map(float, line.split())))
