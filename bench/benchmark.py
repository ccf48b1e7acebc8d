"""Runs the parts of the benchmark in order, shows progress, and writes the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import rich.console
import rich.progress

from bench import (
    connectors,
    dedicated,
    epochs,
    hour,
    idle,
    latency,
    many_partitions,
    memory,
    restart,
    steady,
    throughput,
    tls,
    transforms,
    wan,
    worker_group,
)
from bench.bench_run import BenchRun
from bench.report_rows import build_rows
from bench.report_tables import terminal_tables
from bench.result_files import ResultFile
from bench.scale import Scale
from bench.session import BenchSession
from bench.speedups import compute_speedups
from bench.svg_chart import render_svg
from bench.systems import System
from sparkmirror.lab.processes.process_reaper import ProcessReaper

WIDTH_WITHOUT_TERMINAL = 170


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the benchmark."""

    expected_s: Callable[[Scale], float]
    run: Callable[[BenchSession], None]


PARTS = {
    steady.NAME: Part(expected_s=steady.expected_s, run=steady.run),
    dedicated.NAME: Part(expected_s=dedicated.expected_s, run=dedicated.run),
    restart.NAME: Part(expected_s=restart.expected_s, run=restart.run),
    epochs.NAME: Part(expected_s=epochs.expected_s, run=epochs.run),
    hour.NAME: Part(expected_s=hour.expected_s, run=hour.run),
    throughput.NAME: Part(expected_s=throughput.expected_s, run=throughput.run),
    memory.NAME: Part(expected_s=memory.expected_s, run=memory.run),
    latency.NAME: Part(expected_s=latency.expected_s, run=latency.run),
    idle.NAME: Part(expected_s=idle.expected_s, run=idle.run),
    tls.NAME: Part(expected_s=tls.expected_s, run=tls.run),
    transforms.NAME: Part(expected_s=transforms.expected_s, run=transforms.run),
    wan.NAME: Part(expected_s=wan.expected_s, run=wan.run),
    connectors.NAME: Part(expected_s=connectors.expected_s, run=connectors.run),
    worker_group.NAME: Part(expected_s=worker_group.expected_s, run=worker_group.run),
    many_partitions.NAME: Part(expected_s=many_partitions.expected_s, run=many_partitions.run),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPlan:
    """The parts, workloads and systems to measure."""

    parts: Sequence[str]
    scale: Scale
    workloads: frozenset[str]
    """An empty set means all workloads."""
    systems: frozenset[System]

    def expected_s(self) -> float:
        """Return the expected duration if all systems run."""
        total_s = sum(PARTS[name].expected_s(self.scale) for name in self.parts)
        if not self.workloads or throughput.NAME not in self.parts:
            return total_s
        skipped = sum(one.name not in self.workloads for one in throughput.WORKLOADS)
        return total_s - skipped * throughput.workload_s(self.scale)


def run_benchmark(plan: BenchmarkPlan, result_file: ResultFile) -> bool:
    """Measure and show the table; return False if the user interrupted it. Blocks."""
    console = rich.console.Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_WITHOUT_TERMINAL
    expected_s = plan.expected_s()
    console.print(
        f"{', '.join(plan.parts)}: about {expected_s / 60:.0f} minutes, until about"
        f" {time.strftime('%H:%M', time.localtime(time.time() + expected_s))}."
        " Leave the computer alone meanwhile; Ctrl-C ends it and keeps the results so far."
    )
    with ProcessReaper.start() as reaper, _progress(console) as progress:
        session = BenchSession(
            scale=plan.scale,
            reaper=reaper,
            save_runs=result_file.write,
            progress=progress,
            progress_task=progress.add_task("", total=expected_s),
            selected_workloads=plan.workloads,
            systems=plan.systems,
        )
        finished = _run_all(plan.parts, session)
    for run in session.runs:
        if run.failure:
            console.print(
                f"failed: {run.bench} {run.workload} {run.round} {run.who}: {run.failure}"
            )
    if session.runs:
        console.print(terminal_tables(build_rows(session.runs)))
        result_file.path.with_suffix(".svg").write_text(
            render_chart(session.runs), encoding="utf-8"
        )
        console.print(
            f"Every figure and a picture: bench/results/{result_file.path.stem}.json, .svg"
        )
    return finished


def render_chart(runs: Sequence[BenchRun]) -> str:
    """Return the SVG chart of some runs."""
    return render_svg(
        compute_speedups(runs), "sparkmirror beside Java MirrorMaker 2, on one computer"
    )


def _run_all(names: Sequence[str], session: BenchSession) -> bool:
    try:
        for name in names:
            PARTS[name].run(session)
    except KeyboardInterrupt:
        session.show_status("interrupted: everything is being stopped")
        return False
    return True


def _progress(console: rich.console.Console) -> rich.progress.Progress:
    return rich.progress.Progress(
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(),
        rich.progress.TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
