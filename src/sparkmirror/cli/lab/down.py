"""`lab down`."""

from __future__ import annotations

import click

from sparkmirror.cli.lab.lookup import lab_option, lock_wait_notice, open_lab
from sparkmirror.cli.progress_line import progress_line
from sparkmirror.lab.lab_store import LabStore


@click.command()
@lab_option
def down(lab_name: str) -> None:
    """Stop all clusters of a lab and remove their data."""
    store = LabStore()
    with progress_line() as progress, store.lock(lab_name, lock_wait_notice(progress)):
        running_lab = open_lab(store, lab_name)
        if running_lab is not None:
            progress.show("Stopping the lab")
            running_lab.down()
    if running_lab is None:
        click.echo(f"No lab {lab_name!r} is up.")
    else:
        click.echo(f"Lab {lab_name!r} is down: {', '.join(running_lab.clusters)}.")
