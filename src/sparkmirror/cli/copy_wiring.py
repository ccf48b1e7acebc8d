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

from sparkmirror.cli import copy_sides, copy_tables
from sparkmirror.cli.copy_engine import EngineFactory, Where
from sparkmirror.cli.copy_goal import Goal, blocked
from sparkmirror.cli.copy_interrupt import interrupts
from sparkmirror.cli.copy_job import make_job
from sparkmirror.cli.copy_legs import Legs, measure, refuse_strays, strangers
from sparkmirror.cli.copy_meter import Meter
from sparkmirror.cli.copy_plan import CopyPlan, plan_copy
from sparkmirror.cli.copy_request import CopyRequest
from sparkmirror.cli.copy_run import Ending, Run, Why
from sparkmirror.cli.copy_screen import screen
from sparkmirror.copy.job import Job
from sparkmirror.errors import BadRequest

DONE = 0
FAILED = 2
INTERRUPTED = 130

_HOW_TO_GO_ON = "The same command goes on from there."


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a copy is to be done, whatever is copied."""

    until_caught_up: bool = False
    receipts: str | None = None
    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    yes: bool = False
    dry_run: bool = False


def carry_through(
    request: CopyRequest, manner: Manner, engine: EngineFactory, console: rich.console.Console
) -> int:
    """Do it all; return the exit code."""
    for notice in (*request.source.notices, *request.target.notices):
        click.echo(notice, err=True)
    with copy_sides.opened(request, partial(click.echo, err=True)) as sides:
        survey = copy_sides.look(sides)
        plan = copy_sides.complete(request, plan_copy(request, survey), sides)
        refuse_strays(request.start, plan.partitions)
        job = make_job(request, plan)
        legs = measure(job, plan, survey)
        copy_tables.show_plan(console, request, survey, plan, legs)
        if manner.dry_run:
            console.print("Nothing was changed: --dry-run.")
            return DONE
        if not manner.yes:
            _ask_about_strangers(request, plan, legs)
        copy_sides.carry_out(plan, sides)
    return _run(_Copy(request, manner, job, legs), engine, console)


@dataclass(frozen=True, slots=True)
class _Copy:
    """Everything about one copy that is ready to run."""

    request: CopyRequest
    manner: Manner
    job: Job
    legs: Legs

    def goal(self) -> Goal:
        goals = {str(partition): leg.goal for partition, leg in self.legs.items()}
        return Goal(goals if self.manner.until_caught_up else None)

    def meter(self) -> Meter:
        return Meter(
            self.legs,
            self.job.remote_topics,
            has_goal=self.manner.until_caught_up,
            began=time.monotonic(),
        )


def _ask_about_strangers(request: CopyRequest, plan: CopyPlan, legs: Legs) -> None:
    """Appending to somebody else's records cannot be undone: have somebody say yes to it."""
    names = strangers(plan, legs)
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


def _run(copy: _Copy, engine: EngineFactory, console: rich.console.Console) -> int:
    manner = copy.manner
    where = Where.of(copy.job, manner.receipts, manner.master, manner.conf)
    with screen(console) as shown, interrupts() as asked:
        run = Run(
            engine=engine(copy.job, where),
            goal=copy.goal(),
            meter=copy.meter(),
            screen=shown,
            is_interrupted=asked.is_asked,
            clock=time.monotonic,
        )
        ending = run.follow()
    return _tell_the_end(copy, ending, where, console)


def _tell_the_end(copy: _Copy, ending: Ending, where: Where, console: rich.console.Console) -> int:
    flow = copy.request.flow
    copy_tables.show_summary(console, ending.progress, len(copy.job.tasks), ending.events)
    console.print(f"Receipts: {where.receipts}", soft_wrap=True)
    match ending.why:
        case Why.CAUGHT_UP:
            console.print(f"All that {flow.source} held at the start is on {flow.target}.")
            return DONE
        case Why.INTERRUPTED:
            copy_tables.show_standing(console, ending.progress)
            copy_tables.show_blocked(console, blocked(ending.status.snapshot))
            console.print(f"Interrupted. {_HOW_TO_GO_ON}")
            return INTERRUPTED if copy.manner.until_caught_up else DONE
        case Why.STUCK:
            console.print("Nothing moves any more:")
            copy_tables.show_blocked(console, blocked(ending.status.snapshot))
            return FAILED
        case Why.FAILED:
            copy_tables.show_standing(console, ending.progress)
            trouble = ending.status.trouble or "The engine has ended without a word."
            console.print(f"Spark's log: {where.log}", soft_wrap=True)
            click.echo(f"Error: {trouble}\n{_HOW_TO_GO_ON}", err=True)
            return FAILED
