"""Measures catching up over SASL_SSL on both sides, beside Java with the same settings.

The cipher costs every system the same per byte. So the ratios are smaller than without TLS.
"""

from __future__ import annotations

from bench.clusters import running_clusters
from bench.scale import Scale
from bench.session import BenchSession
from bench.systems import System
from bench.throughput import WORKLOADS, run_workload, scaled, workload_s
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol

NAME = "tls"
SYSTEMS = (System.MM2_TUNED, System.SPARKMIRROR)
_MEASURED = tuple(one for one in WORKLOADS if one.name in ("1k-128k", "100b-128k"))
_OPEN_S = 15.0


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + len(_MEASURED) * workload_s(scale) * len(SYSTEMS) / len(System)


def run(session: BenchSession) -> None:
    """Measure tuned Java and sparkmirror in each round of two workloads."""
    with running_clusters(
        session.reaper, session.show_status, listener=ListenerProtocol.SASL_SSL
    ) as clusters:
        for workload in _MEASURED:
            if session.includes(workload.name):
                small = scaled(workload, session.scale)
                run_workload(session, clusters, small, bench=NAME, systems=SYSTEMS)
