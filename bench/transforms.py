"""Measures flows with transforms, beside Java MirrorMaker 2 with the same transforms.

RegexRouter, DropHeaders and Filter need topic and headers only: throughput beside tuned Java,
latency beside default Java. MaskField needs values: Java's mirror gives it bytes and it fails there
on every record. So its rate is compared with the rate of our own flow without transforms.
"""

from __future__ import annotations

from bench import latency
from bench.bench_run import BenchRun
from bench.clusters import BenchClusters, running_clusters
from bench.scale import Scale
from bench.session import BenchSession, rotated_systems
from bench.systems import System
from bench.throughput import (
    FILL_S,
    OPEN_S,
    WARM_S,
    fill_workload,
    run_round,
    run_s,
    run_workload,
    scaled,
    warm_up,
)
from bench.transform_chain import MASK_FIELD, NO_TRANSFORMS, TOPIC_AND_HEADERS
from bench.workloads import Workload

NAME = "transforms"
SYSTEMS = (System.MM2_TUNED, System.SPARKMIRROR)
LATENCY_SYSTEMS = (System.MM2_DEFAULT, System.SPARKMIRROR)
LATENCY_WORKLOAD = "latency"
LATENCY_HEADER_SHARE = 10
HEADER_WORKLOADS = (
    Workload(
        name="headers-10-128k",
        title="1 KB, batches of 128 KB, headers to drop on 10 % of records",
        value_bytes=1000,
        batch_bytes=128 << 10,
        records=800_000,
        header_share=10,
        chain=TOPIC_AND_HEADERS,
    ),
    Workload(
        name="headers-100-128k",
        title="1 KB, batches of 128 KB, headers to drop on all records",
        value_bytes=1000,
        batch_bytes=128 << 10,
        records=800_000,
        header_share=100,
        chain=TOPIC_AND_HEADERS,
    ),
    Workload(
        name="headers-10-16k",
        title="1 KB, batches of 16 KB, headers to drop on 10 % of records",
        value_bytes=1000,
        batch_bytes=16 << 10,
        records=800_000,
        header_share=10,
        chain=TOPIC_AND_HEADERS,
    ),
)
JSON_PLAIN = Workload(
    name="json-plain",
    title="JSON of 1 KB, no transforms",
    value_bytes=1000,
    batch_bytes=128 << 10,
    records=400_000,
    complete_json=True,
    chain=NO_TRANSFORMS,
)
JSON_MASKED = Workload(
    name="json-masked",
    title="JSON of 1 KB, MaskField",
    value_bytes=1000,
    batch_bytes=128 << 10,
    records=400_000,
    complete_json=True,
    chain=MASK_FIELD,
)
JSON_WORKLOADS = (JSON_PLAIN, JSON_MASKED)
WORKLOAD_NAMES = (
    *(workload.name for workload in (*HEADER_WORKLOADS, *JSON_WORKLOADS)),
    LATENCY_WORKLOAD,
)
_LATENCY_PART = 1 / 5
"""The median needs no change of epochs, so that a part of the usual window is enough."""
_ALL_RECORDS_S = 4.0
"""The expected wait for records after the window."""


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    headers_s = sum(run_s(system, scale) + _ALL_RECORDS_S for system in SYSTEMS)
    masked_s = 2 * run_s(System.SPARKMIRROR, scale) + _ALL_RECORDS_S + scale.window_s
    latency_s = len(LATENCY_SYSTEMS) * latency.run_s(_window_s(scale))
    rounds_s = scale.rounds * (len(HEADER_WORKLOADS) * headers_s + masked_s + latency_s)
    fill_s = FILL_S * (len(HEADER_WORKLOADS) + len(JSON_WORKLOADS))
    return OPEN_S + WARM_S + fill_s + rounds_s


def run(session: BenchSession) -> None:
    """Measure throughput with each chain, then latency, each round by round."""
    with running_clusters(session.reaper, session.show_status) as clusters:
        warm_up(session, clusters)
        for workload in HEADER_WORKLOADS:
            if session.includes(workload.name):
                run_workload(
                    session,
                    clusters,
                    scaled(workload, session.scale),
                    bench=NAME,
                    systems=SYSTEMS,
                )
        _run_json(session, clusters)
        if session.includes(LATENCY_WORKLOAD):
            _run_latency(session, clusters)


def _run_json(session: BenchSession, clusters: BenchClusters) -> None:
    """Measure our flow with MaskField and without transforms in turn."""
    workloads = [
        scaled(workload, session.scale)
        for workload in JSON_WORKLOADS
        if session.includes(workload.name)
    ]
    for workload in workloads:
        fill_workload(session, clusters, workload)
    for number in range(session.scale.rounds):
        for workload in workloads:
            run_round(
                session, clusters, workload, number, bench=NAME, systems=(System.SPARKMIRROR,)
            )
    clusters.delete_source_topics([workload.name for workload in workloads])


def _run_latency(session: BenchSession, clusters: BenchClusters) -> None:
    window_s = _window_s(session.scale)
    for number in range(session.scale.rounds):
        for system in rotated_systems(number):
            if system not in LATENCY_SYSTEMS:
                continue
            template = BenchRun(bench=NAME, workload=LATENCY_WORKLOAD, who=system, round=number + 1)

            def measure(template: BenchRun = template) -> BenchRun:
                return latency.measure_latency(
                    template,
                    clusters,
                    window_s,
                    chain=TOPIC_AND_HEADERS,
                    header_share=LATENCY_HEADER_SHARE,
                )

            session.measure(template, measure, latency.run_s(window_s))


def _window_s(scale: Scale) -> float:
    return scale.latency_s * _LATENCY_PART
