"""Where benches report to: results so far, what runs now, how much time is left.

Results are written after every run, so an interrupted benchmark keeps what it has.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import rich.console
import rich.progress

from bench.contestants import Who
from bench.run import Run
from bench.scale import Scale
from sparkmirror.errors import MirrorError
from sparkmirror.lab.guard import Guard

Keep = Callable[[list[Run]], None]
"""Keeps all runs so far."""


@dataclass(slots=True, kw_only=True)
class Desk:
    """One benchmark under way."""

    scale: Scale
    guard: Guard
    keep: Keep
    progress: rich.progress.Progress
    task: rich.progress.TaskID
    only_workloads: frozenset[str] = frozenset()
    contestants: frozenset[Who] = frozenset(Who)
    runs: list[Run] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Tell what happens now."""
        if self.progress.console.is_terminal:
            self.progress.update(self.task, description=text)
        else:
            self.progress.console.print(f"{time.strftime('%H:%M:%S')}  {text}")

    @contextmanager
    def step(self, text: str, expected_s: float) -> Iterator[None]:
        """Do something that takes about so long."""
        self.say(text)
        yield
        self.progress.advance(self.task, expected_s)

    def take(self, run: Run, measure: Callable[[], Run], expected_s: float) -> None:
        """Do a run, if its contestant was asked for.

        One that fails is kept as a failure, and the others go on.
        """
        if run.who not in self.contestants:
            return
        with self.step(f"{run.bench} {run.workload}, round {run.round}: {run.who}", expected_s):
            try:
                done = measure()
            except MirrorError as error:
                done = replace(run, failure=str(error))
            self._record(replace(done, load=os.getloadavg()))

    def wants(self, workload: str) -> bool:
        """Whether a workload was asked for."""
        return not self.only_workloads or workload in self.only_workloads

    def _record(self, run: Run) -> None:
        self.runs.append(run)
        self.keep(self.runs)
        said = run.failure or ", ".join(f"{k} {v:,.4g}" for k, v in run.figures.items())
        self.progress.console.print(
            f"  {run.bench:<10} {run.workload:<10} {run.round}  {run.who:<12} {said}",
            markup=False,
            highlight=False,
        )


def in_turn(round_number: int) -> tuple[Who, ...]:
    """The contestants of a round; each round another begins."""
    everybody = tuple(Who)
    first = round_number % len(everybody)
    return everybody[first:] + everybody[:first]
