"""One partition over a long line: the mirror stands beside the target, 100 ms from the source."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.contestants import ROOT, Who
from bench.desk import Desk, in_turn
from bench.run import Run
from bench.scale import Scale
from bench.stage import Stage, opened
from bench.throughput import race
from bench.workloads import Workload
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.ports import Ports

NAME = "wan"
ROUND_TRIP_MS = 100.0
WORKLOAD = Workload(
    name="100-ms",
    title="1 KB, one partition",
    value_bytes=1000,
    batch_bytes=128 << 10,
    records=800_000,
)
_AROUND_S = {Who.MM2_DEFAULT: 18.0, Who.MM2_TUNED: 18.0, Who.PLAIN: 5.0, Who.OURS: 12.0}
_OPEN_S = 25.0


def expected_s(scale: Scale) -> float:
    """About how long all of it takes."""
    return _OPEN_S + scale.rounds * sum(_run_s(who, scale) for who in Who)


def run(desk: Desk) -> None:
    """Every round, every contestant."""
    owner = Path(tempfile.mkdtemp(prefix="sparkmirror-line-"))
    desk.guard.remove_at_end(owner)
    port = Ports().claim(1, owner)[0]
    workload = replace(WORKLOAD, records=int(WORKLOAD.records * desk.scale.share))
    with opened(desk.guard, desk.say, advertised=f"127.0.0.1:{port}") as stage:
        with desk.step(f"filling a topic: {workload.title}", _OPEN_S), line(stage, port, 0):
            records = stage.fill(workload.name, workload, partitions=1)
        with line(stage, port, ROUND_TRIP_MS):
            for number in range(desk.scale.rounds):
                for who in in_turn(number):
                    blank = Run(bench=NAME, workload=workload.name, who=who, round=number + 1)

                    def measure(blank: Run = blank) -> Run:
                        flow = stage.flow([workload.name], 1)
                        return race(blank, stage, flow, records, desk.scale.window_s)

                    desk.take(blank, measure, _run_s(who, desk.scale))
    Ports().release(owner)


@contextmanager
def line(stage: Stage, port: int, round_trip_ms: float) -> Iterator[None]:
    """Put a line of some length before the source."""
    host, _, broker_port = stage.source.bootstrap().rpartition(":")
    guard: Guard = stage.guard
    process = guard.launch(
        [
            *(sys.executable, "-m", "bench.delay"),
            *(str(port), host, broker_port, str(round_trip_ms)),
        ],
        log=stage.directory / "line.log",
        cwd=ROOT,
    )
    try:
        yield
    finally:
        process.send(signal.SIGKILL)
        process.ended_within(5)


def _run_s(who: Who, scale: Scale) -> float:
    return _AROUND_S[who] + scale.window_s
