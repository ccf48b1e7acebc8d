"""The whole benchmark: its parts in order, what is shown meanwhile, and what is left at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import rich.console
import rich.progress

from bench import idle, latency, memory, throughput, wan
from bench.bench_run import BenchRun
from bench.report_rows import build_rows
from bench.report_tables import terminal_table
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
    throughput.NAME: Part(expected_s=throughput.expected_s, run=throughput.run),
    memory.NAME: Part(expected_s=memory.expected_s, run=memory.run),
    latency.NAME: Part(expected_s=latency.expected_s, run=latency.run),
    idle.NAME: Part(expected_s=idle.expected_s, run=idle.run),
    wan.NAME: Part(expected_s=wan.expected_s, run=wan.run),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPlan:
    """What is to be measured."""

    parts: Sequence[str]
    scale: Scale
    workloads: frozenset[str]
    """None means all."""
    systems: frozenset[System]

    def expected_s(self) -> float:
        """About how long it takes if everybody runs."""
        whole_s = sum(PARTS[name].expected_s(self.scale) for name in self.parts)
        if not self.workloads or throughput.NAME not in self.parts:
            return whole_s
        left_out = len(throughput.WORKLOADS) - len(self.workloads)
        return whole_s - left_out * throughput.workload_s(self.scale)


def run_benchmark(order: BenchmarkPlan, kept: ResultFile) -> bool:
    """Measure and show the table; tell whether it came to its end."""
    console = rich.console.Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_WITHOUT_TERMINAL
    expected_s = order.expected_s()
    console.print(
        f"{', '.join(order.parts)}: about {expected_s / 60:.0f} minutes, until about"
        f" {time.strftime('%H:%M', time.localtime(time.time() + expected_s))}."
        " Leave the computer alone meanwhile; Ctrl-C ends it and keeps the results so far."
    )
    with ProcessReaper.start() as guard, _progress(console) as progress:
        desk = BenchSession(
            scale=order.scale,
            guard=guard,
            save_runs=kept.write,
            progress=progress,
            progress_task=progress.add_task("", total=expected_s),
            selected_workloads=order.workloads,
            systems=order.systems,
        )
        finished = _run_all(order.parts, desk)
    for run in desk.runs:
        if run.failure:
            console.print(
                f"failed: {run.bench} {run.workload} {run.round} {run.who}: {run.failure}"
            )
    if desk.runs:
        console.print(terminal_table(build_rows(desk.runs)))
        kept.path.with_suffix(".svg").write_text(render_chart(desk.runs), encoding="utf-8")
        console.print(f"Every figure and a picture: bench/results/{kept.path.stem}.json, .svg")
    return finished


def render_chart(runs: Sequence[BenchRun]) -> str:
    """The plot of some runs."""
    return render_svg(
        compute_speedups(runs), "sparkmirror beside Java MirrorMaker 2, on one computer"
    )


def _run_all(names: Sequence[str], desk: BenchSession) -> bool:
    try:
        for name in names:
            PARTS[name].run(desk)
    except KeyboardInterrupt:
        desk.show_status("interrupted: everything is being stopped")
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
