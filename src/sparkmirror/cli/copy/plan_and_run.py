"""Runs one copy: clusters, plan, engine, screen and summary.

1. describe both clusters and plan
2. show the plan; ask before appending to records that the mirror has not written
3. create topics on the target
4. run the job and print the result
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import click
import rich.console

from sparkmirror.cli.copy import text_output
from sparkmirror.cli.copy.cluster_admins import connect, describe_clusters
from sparkmirror.cli.copy.completion import CompletionCheck, blocked_partitions
from sparkmirror.cli.copy.copy_run import CopyRun, CopyRunResult, StopReason
from sparkmirror.cli.copy.create_topics import apply_plan, complete_plan
from sparkmirror.cli.copy.engine import EngineFactory, LaunchOptions
from sparkmirror.cli.copy.plan import CopyPlan, make_job, plan_copy
from sparkmirror.cli.copy.progress_tracker import ProgressTracker
from sparkmirror.cli.copy.ranges import (
    PartitionRanges,
    fetch_ranges,
    topics_with_foreign_records,
    validate_start_offsets,
)
from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.cli.copy.screen import open_screen
from sparkmirror.copy.job import CopyJob
from sparkmirror.errors import BadRequest
from sparkmirror.worker.shutdown_signal import ShutdownSignal, interrupt

DONE = 0
FAILED = 2
INTERRUPTED = 130

_RESUME_HINT = "The same command continues from there."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run a copy; independent of what is copied."""

    until_caught_up: bool = False
    receipts: str | None = None
    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    yes: bool = False
    dry_run: bool = False


def run_copy(
    request: CopyRequest, options: RunOptions, engine: EngineFactory, console: rich.console.Console
) -> int:
    """Run the whole copy; return the exit code."""
    for notice in (*request.source.notices, *request.target.notices):
        click.echo(notice, err=True)
    with connect(request, partial(click.echo, err=True)) as admins:
        descriptions = describe_clusters(admins)
        plan = complete_plan(request, plan_copy(request, descriptions), admins)
        validate_start_offsets(request.start, plan.partitions)
        job = make_job(request, plan)
        ranges = fetch_ranges(job, plan, descriptions)
        text_output.show_plan(console, request, descriptions, plan, ranges)
        if options.dry_run:
            console.print("Nothing was changed: --dry-run.")
            return DONE
        if not options.yes:
            _confirm_append(request, plan, ranges)
        apply_plan(plan, admins)
    return _run(_PreparedCopy(request, options, job, ranges), engine, console)


@dataclass(frozen=True, slots=True)
class _PreparedCopy:
    """A copy that is ready to run."""

    request: CopyRequest
    options: RunOptions
    job: CopyJob
    ranges: PartitionRanges

    def completion_check(self) -> CompletionCheck:
        end_offsets = {str(partition): found.end_offset for partition, found in self.ranges.items()}
        return CompletionCheck(end_offsets if self.options.until_caught_up else None)

    def progress_tracker(self) -> ProgressTracker:
        return ProgressTracker(
            self.ranges,
            self.job.remote_topics,
            has_end=self.options.until_caught_up,
            started_at=time.monotonic(),
        )


def _confirm_append(request: CopyRequest, plan: CopyPlan, ranges: PartitionRanges) -> None:
    """Ask before appending to records that this mirror has not written: it cannot be undone."""
    names = topics_with_foreign_records(plan, ranges)
    if not names:
        return
    warning = (
        f"{request.flow.target} already holds records in {', '.join(names)} that this mirror has"
        " not written; the copy would be appended to them."
    )
    if not sys.stdin.isatty():
        raise BadRequest(f"{warning} Add --yes to do so.")
    click.echo(warning, err=True)
    click.confirm("Go on?", abort=True, err=True)


def _run(copy: _PreparedCopy, engine: EngineFactory, console: rich.console.Console) -> int:
    options = copy.options
    launch = LaunchOptions.resolve(copy.job, options.receipts, options.master, options.conf)
    shutdown = ShutdownSignal(interrupt)
    with open_screen(console) as screen, shutdown.installed():
        run = CopyRun(
            engine=engine(copy.job, launch),
            completion=copy.completion_check(),
            tracker=copy.progress_tracker(),
            screen=screen,
            is_interrupted=shutdown.is_requested,
            clock=time.monotonic,
        )
        result = run.run()
    return _show_result(copy, result, launch, console)


def _show_result(
    copy: _PreparedCopy, result: CopyRunResult, launch: LaunchOptions, console: rich.console.Console
) -> int:
    flow = copy.request.flow
    text_output.show_summary(console, result.progress, len(copy.job.tasks), result.events)
    console.print(f"Receipts: {launch.receipts}", soft_wrap=True)
    match result.reason:
        case StopReason.CAUGHT_UP:
            console.print(f"Everything that {flow.source} held at the start is on {flow.target}.")
            return DONE
        case StopReason.INTERRUPTED:
            text_output.show_positions(console, result.progress)
            text_output.show_blocked(console, blocked_partitions(result.status.snapshot))
            console.print(f"Interrupted. {_RESUME_HINT}")
            return INTERRUPTED if copy.options.until_caught_up else DONE
        case StopReason.STUCK:
            console.print("No partition makes progress:")
            text_output.show_blocked(console, blocked_partitions(result.status.snapshot))
            return FAILED
        case StopReason.FAILED:
            text_output.show_positions(console, result.progress)
            problem = result.status.problem or "The engine ended without an error message."
            console.print(f"Spark's log: {launch.log}", soft_wrap=True)
            click.echo(f"Error: {problem}\n{_RESUME_HINT}", err=True)
            return FAILED
