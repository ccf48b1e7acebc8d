"""The state of a running benchmark: results so far, current step, remaining time.

Results are written after every run, so an interrupted benchmark keeps its finished runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import rich.console
import rich.progress

from bench.bench_run import BenchRun
from bench.scale import Scale
from bench.systems import System
from sparkmirror.errors import MirrorError
from sparkmirror.lab.processes.process_reaper import ProcessReaper

SaveRuns = Callable[[list[BenchRun]], None]
"""Writes all runs so far."""


@dataclass(slots=True, kw_only=True)
class BenchSession:
    """One running benchmark."""

    scale: Scale
    reaper: ProcessReaper
    save_runs: SaveRuns
    progress: rich.progress.Progress
    progress_task: rich.progress.TaskID
    selected_workloads: frozenset[str] = frozenset()
    systems: frozenset[System] = frozenset(System)
    runs: list[BenchRun] = field(default_factory=list)

    def show_status(self, text: str) -> None:
        """Show the current step."""
        if self.progress.console.is_terminal:
            self.progress.update(self.progress_task, description=text)
        else:
            self.progress.console.print(f"{time.strftime('%H:%M:%S')}  {text}")

    @contextmanager
    def step(self, text: str, expected_s: float) -> Iterator[None]:
        """Show a step during the block, then advance the progress by its expected duration."""
        self.show_status(text)
        yield
        self.progress.advance(self.progress_task, expected_s)

    def measure(self, run: BenchRun, measure: Callable[[], BenchRun], expected_s: float) -> None:
        """Execute a run if its system is selected, and store it.

        A MirrorError is stored as the failure of the run; the benchmark continues.
        """
        if run.who not in self.systems:
            return
        with self.step(f"{run.bench} {run.workload}, round {run.round}: {run.who}", expected_s):
            try:
                done = measure()
            except MirrorError as error:
                done = replace(run, failure=str(error))
            self._add_run(replace(done, load=os.getloadavg()))

    def includes(self, workload: str) -> bool:
        """Return whether a workload is selected."""
        return not self.selected_workloads or workload in self.selected_workloads

    def _add_run(self, run: BenchRun) -> None:
        self.runs.append(run)
        self.save_runs(self.runs)
        result = run.failure or ", ".join(f"{k} {v:,.4g}" for k, v in run.figures.items())
        self.progress.console.print(
            f"  {run.bench:<10} {run.workload:<10} {run.round}  {run.who:<12} {result}",
            markup=False,
            highlight=False,
        )


def rotated_systems(round_number: int) -> tuple[System, ...]:
    """Return the systems in the order of a round; each round begins with another system."""
    systems = tuple(System)
    first = round_number % len(systems)
    return systems[first:] + systems[:first]
