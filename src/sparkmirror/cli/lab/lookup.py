"""Finds the lab that a `lab` command works on."""

from __future__ import annotations

from collections.abc import Callable

import click

from sparkmirror.cli.progress_line import ProgressLine
from sparkmirror.errors import NotFound
from sparkmirror.lab.detached_lab import DetachedLab, remove_stale_lab
from sparkmirror.lab.lab_store import DEFAULT_LAB, LabStore
from sparkmirror.lab.processes.process_reaper import ProcessReaper


def lab_flag(name: str) -> str:
    """The option that names a lab in a command; empty for the default lab."""
    return "" if name == DEFAULT_LAB else f" --lab {name}"


def start_hint(name: str) -> str:
    """The command that starts a lab."""
    return f"start one with: sparkmirror lab up{lab_flag(name)}"


lab_option = click.option(
    "--lab", "lab_name", default=DEFAULT_LAB, metavar="NAME", help="Which lab, if not the default."
)
broker_option = click.option("--broker", type=int, metavar="N", help="One broker only.")


def open_lab(store: LabStore, name: str, reaper: ProcessReaper | None = None) -> DetachedLab | None:
    """Return the lab if it is up. Remove the files of a lab that ended with a restart."""
    if remove_stale_lab(store, name):
        click.echo(f"Lab {name!r} ended when the computer restarted: files removed.", err=True)
    return DetachedLab.open(store, name, reaper)


def require_lab(store: LabStore, name: str, reaper: ProcessReaper | None = None) -> DetachedLab:
    """Return the lab. Raises NotFound if it is not up."""
    found = open_lab(store, name, reaper)
    if found is None:
        others = ", ".join(store.names())
        known = f" (others: {others}, see --lab)" if others else ""
        raise NotFound(f"No lab {name!r} is up{known}: {start_hint(name)}.")
    return found


def lock_wait_notice(progress: ProgressLine) -> Callable[[str], None]:
    """Return a callback that shows which process holds the lab's lock."""
    return lambda holder: progress.show(f"Waiting for {holder}, which changes this lab")
