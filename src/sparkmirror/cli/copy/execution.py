"""One copy, put together: the clusters, the plan, the engine, the screen, and what is said last.

1. look at both clusters and plan
2. show the plan, and ask where somebody might be sorry
3. make the target ready
4. run the job, and tell how it ended
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import click
import rich.console

from sparkmirror.cli.copy import clusters, tables
from sparkmirror.cli.copy.completion import CompletionCheck, blocked_partitions
from sparkmirror.cli.copy.engine import EngineFactory, LaunchOptions
from sparkmirror.cli.copy.job import make_job
from sparkmirror.cli.copy.plan import CopyPlan, plan_copy
from sparkmirror.cli.copy.progress import ProgressTracker
from sparkmirror.cli.copy.ranges import (
    PartitionRanges,
    fetch_ranges,
    topics_with_foreign_records,
    validate_start_offsets,
)
from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.cli.copy.run import CopyRun, CopyRunResult, StopReason
from sparkmirror.cli.copy.screen import open_screen
from sparkmirror.copy.job import CopyJob
from sparkmirror.errors import BadRequest
from sparkmirror.worker.shutdown_signal import ShutdownSignal, interrupt

DONE = 0
FAILED = 2
INTERRUPTED = 130

_RESUME_HINT = "The same command goes on from there."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a copy is to be done, whatever is copied."""

    until_caught_up: bool = False
    receipts: str | None = None
    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    yes: bool = False
    dry_run: bool = False


def run_copy(
    request: CopyRequest, manner: RunOptions, engine: EngineFactory, console: rich.console.Console
) -> int:
    """Do it all; return the exit code."""
    for notice in (*request.source.notices, *request.target.notices):
        click.echo(notice, err=True)
    with clusters.connect(request, partial(click.echo, err=True)) as sides:
        survey = clusters.describe_clusters(sides)
        plan = clusters.complete_plan(request, plan_copy(request, survey), sides)
        validate_start_offsets(request.start, plan.partitions)
        job = make_job(request, plan)
        legs = fetch_ranges(job, plan, survey)
        tables.show_plan(console, request, survey, plan, legs)
        if manner.dry_run:
            console.print("Nothing was changed: --dry-run.")
            return DONE
        if not manner.yes:
            _confirm_append(request, plan, legs)
        clusters.apply_plan(plan, sides)
    return _run(_PreparedCopy(request, manner, job, legs), engine, console)


@dataclass(frozen=True, slots=True)
class _PreparedCopy:
    """Everything about one copy that is ready to run."""

    request: CopyRequest
    options: RunOptions
    job: CopyJob
    ranges: PartitionRanges

    def completion_check(self) -> CompletionCheck:
        goals = {str(partition): leg.end_offset for partition, leg in self.ranges.items()}
        return CompletionCheck(goals if self.options.until_caught_up else None)

    def progress_tracker(self) -> ProgressTracker:
        return ProgressTracker(
            self.ranges,
            self.job.remote_topics,
            has_goal=self.options.until_caught_up,
            began=time.monotonic(),
        )


def _confirm_append(request: CopyRequest, plan: CopyPlan, legs: PartitionRanges) -> None:
    """Appending to somebody else's records cannot be undone: have somebody say yes to it."""
    names = topics_with_foreign_records(plan, legs)
    if not names:
        return
    said = (
        f"{request.flow.target} already holds records in {', '.join(names)} that this mirror has"
        " not written; the copy would be appended to them."
    )
    if not sys.stdin.isatty():
        raise BadRequest(f"{said} Say --yes if that is meant.")
    click.echo(said, err=True)
    click.confirm("Go on?", abort=True, err=True)


def _run(copy: _PreparedCopy, engine: EngineFactory, console: rich.console.Console) -> int:
    manner = copy.options
    where = LaunchOptions.resolve(copy.job, manner.receipts, manner.master, manner.conf)
    shutdown = ShutdownSignal(interrupt)
    with open_screen(console) as shown, shutdown.installed():
        run = CopyRun(
            engine=engine(copy.job, where),
            completion=copy.completion_check(),
            tracker=copy.progress_tracker(),
            screen=shown,
            is_interrupted=shutdown.is_requested,
            clock=time.monotonic,
        )
        ending = run.run()
    return _show_result(copy, ending, where, console)


def _show_result(
    copy: _PreparedCopy, ending: CopyRunResult, where: LaunchOptions, console: rich.console.Console
) -> int:
    flow = copy.request.flow
    tables.show_summary(console, ending.progress, len(copy.job.tasks), ending.events)
    console.print(f"Receipts: {where.receipts}", soft_wrap=True)
    match ending.reason:
        case StopReason.CAUGHT_UP:
            console.print(f"All that {flow.source} held at the start is on {flow.target}.")
            return DONE
        case StopReason.INTERRUPTED:
            tables.show_positions(console, ending.progress)
            tables.show_blocked(console, blocked_partitions(ending.status.snapshot))
            console.print(f"Interrupted. {_RESUME_HINT}")
            return INTERRUPTED if copy.options.until_caught_up else DONE
        case StopReason.STUCK:
            console.print("Nothing moves any more:")
            tables.show_blocked(console, blocked_partitions(ending.status.snapshot))
            return FAILED
        case StopReason.FAILED:
            tables.show_positions(console, ending.progress)
            trouble = ending.status.problem or "The engine has ended without a word."
            console.print(f"Spark's log: {where.log}", soft_wrap=True)
            click.echo(f"Error: {trouble}\n{_RESUME_HINT}", err=True)
            return FAILED
