"""Measures the latency of dedicated mode over three changes of epochs.

An epoch is one micro-batch of sparkmirror. Its epochs are shorter here than by default, so that
three changes fall into ten minutes. Java MirrorMaker 2 has none.
"""

from __future__ import annotations

from bench import latency
from bench.bench_run import BenchRun
from bench.clusters import running_clusters
from bench.scale import Scale
from bench.session import BenchSession
from bench.systems import System

NAME = "epochs"
WORKLOAD = "three-changes"
SYSTEMS = (System.MM2_DEFAULT, System.SPARKMIRROR)
_CHANGES = 3
_WINDOWS = 2
"""The window is so many times as long as that of `bench.latency`."""
_OPEN_S = 10.0


def expected_s(scale: Scale) -> float:
    """Return the expected duration of this part."""
    return _OPEN_S + len(SYSTEMS) * latency.run_s(_window_s(scale))


def run(session: BenchSession) -> None:
    """Measure both systems once."""
    window_s = _window_s(session.scale)
    epoch_s = window_s / (_CHANGES + 0.5)
    with running_clusters(session.reaper, session.show_status) as clusters:
        for system in SYSTEMS:
            template = BenchRun(bench=NAME, workload=WORKLOAD, who=system, round=1)

            def measure(template: BenchRun = template) -> BenchRun:
                return latency.measure_latency(
                    template, clusters, window_s, all_connectors=True, epoch_s=epoch_s
                )

            session.measure(template, measure, latency.run_s(window_s))


def _window_s(scale: Scale) -> float:
    return scale.latency_s * _WINDOWS
