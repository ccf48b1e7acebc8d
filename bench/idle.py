"""What a mirror costs when nothing happens: processor time over 1,000 quiet partitions."""

from __future__ import annotations

import time
from dataclasses import replace

from bench.contestants import Who
from bench.desk import Desk
from bench.ends import Ends, wait_for_records
from bench.run import Run
from bench.scale import Scale
from bench.stage import Stage, opened
from bench.workloads import Workload

NAME = "idle"
WORKLOAD = Workload(name="quiet", title="quiet", value_bytes=100, batch_bytes=1, records=1)
"""A record in each partition, so that we see when a mirror has found them all."""
TOPICS = 10
PARTITIONS = 100
ALL_FOUND_S = 240.0
SETTLE_S = 20.0
_OPEN_S = 20.0
_AROUND_S = 30.0


def expected_s(scale: Scale) -> float:
    """About how long all of it takes."""
    return _OPEN_S + len(Who) * (_AROUND_S + SETTLE_S + scale.idle_s)


def run(desk: Desk) -> None:
    """Once for each contestant."""
    topics = [f"quiet-{number}" for number in range(TOPICS)]
    with opened(desk.guard, desk.say) as stage:
        with desk.step(f"making {TOPICS * PARTITIONS:,} partitions", _OPEN_S):
            for topic in topics:
                stage.fill(topic, WORKLOAD, PARTITIONS)
        for who in Who:
            blank = Run(bench=NAME, workload=WORKLOAD.name, who=who, round=1)

            def measure(blank: Run = blank) -> Run:
                return _measure(blank, stage, topics, desk.scale.idle_s)

            desk.take(blank, measure, _AROUND_S + SETTLE_S + desk.scale.idle_s)


def _measure(blank: Run, stage: Stage, topics: list[str], idle_s: float) -> Run:
    flow = stage.flow(topics, PARTITIONS)
    with stage.racing(blank.who, flow) as racer:
        ends = Ends(stage.target.access(), flow.remote_partitions)
        try:
            wait_for_records(ends, racer, TOPICS * PARTITIONS, ALL_FOUND_S, 0.5)
        finally:
            ends.close()
        all_found_s = racer.tree.age_s()
        time.sleep(SETTLE_S)
        begun, cpu_s = time.monotonic(), racer.tree.cpu_s()
        time.sleep(idle_s)
        took_s, cpu_s = time.monotonic() - begun, racer.tree.cpu_s() - cpu_s
        racer.check()
        end_s = racer.end()
    return replace(
        blank,
        figures={
            "cpu_share": cpu_s / took_s,
            "all_found_s": all_found_s,
            "took_s": took_s,
            "end_s": end_s,
        },
    )
