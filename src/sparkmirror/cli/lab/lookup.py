"""How every `lab` command finds the lab it is about."""

from __future__ import annotations

from collections.abc import Callable

import click

from sparkmirror.cli.progress_line import ProgressLine
from sparkmirror.errors import NotFound
from sparkmirror.lab.detached_lab import DetachedLab, remove_stale_lab
from sparkmirror.lab.lab_store import DEFAULT_LAB, LabStore
from sparkmirror.lab.processes.process_reaper import ProcessReaper


def lab_flag(name: str) -> str:
    """The words that name a lab in a command; none for the default one."""
    return "" if name == DEFAULT_LAB else f" --lab {name}"


def start_hint(name: str) -> str:
    """What to type to have a lab."""
    return f"start one with: sparkmirror lab up{lab_flag(name)}"


lab_option = click.option(
    "--lab", "lab_name", default=DEFAULT_LAB, metavar="NAME", help="Which lab, if not the default."
)
broker_option = click.option("--broker", type=int, metavar="N", help="One broker only.")


def open_lab(store: LabStore, name: str, guard: ProcessReaper | None = None) -> DetachedLab | None:
    """Find a lab; one that a restart of the computer has ended is cleared away, not found."""
    if remove_stale_lab(store, name):
        click.echo(f"Lab {name!r} ended when the computer was restarted: cleared away.", err=True)
    return DetachedLab.open(store, name, guard)


def require_lab(store: LabStore, name: str, guard: ProcessReaper | None = None) -> DetachedLab:
    """Find a lab that has to be there."""
    found = open_lab(store, name, guard)
    if found is None:
        others = ", ".join(store.names())
        known = f" (others: {others}, see --lab)" if others else ""
        raise NotFound(f"No lab {name!r} is up{known}: {start_hint(name)}.")
    return found


def lock_wait_notice(ticker: ProgressLine) -> Callable[[str], None]:
    """Say for whom a command waits before it may change a lab."""
    return lambda holder: ticker.show(f"Waiting for {holder}, which changes this lab")
