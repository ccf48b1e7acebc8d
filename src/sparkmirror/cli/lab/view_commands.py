"""`lab status` and `lab logs`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict

import click
import rich.console

from sparkmirror.cli.lab.lookup import broker_option, lab_option, open_lab, require_lab, start_hint
from sparkmirror.cli.lab.tables import show_status
from sparkmirror.lab.lab_store import LabStore
from sparkmirror.lab.processes.log_tail import LogTail

_FOLLOW_INTERVAL_S = 0.2


@click.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@lab_option
def status(lab_name: str, form: str) -> None:
    """Show the clusters and how they are."""
    store = LabStore()
    found = open_lab(store, lab_name)
    clusters = found.status() if found is not None else []
    if form == "json":
        plain = {"lab": lab_name, "clusters": [asdict(cluster) for cluster in clusters]}
        click.echo(json.dumps(plain, indent=2))
    elif found is None:
        click.echo(f"No lab {lab_name!r} is up; {start_hint(lab_name)}")
        if others := ", ".join(store.names()):
            click.echo(f"Other labs: {others} (see them with --lab NAME)")
    else:
        show_status(rich.console.Console(highlight=False, soft_wrap=True), clusters)


@click.command()
@click.argument("cluster")
@broker_option
@click.option("--lines", type=click.IntRange(min=0), default=50, show_default=True)
@click.option("--follow", "-f", is_flag=True, help="Go on with what is logged from now on.")
@lab_option
def logs(cluster: str, broker: int | None, lines: int, follow: bool, lab_name: str) -> None:
    """Show what the brokers of a cluster have logged."""
    found = require_lab(LabStore(), lab_name).cluster(cluster)
    chosen = list(found.brokers.values()) if broker is None else [found.broker(broker)]
    tails = {f"{one.name} | " if len(chosen) > 1 else "": LogTail(one.log_file) for one in chosen}
    for prefix, tail in tails.items():
        _echo_lines(prefix, tail.last_lines(lines))
    while follow:
        time.sleep(_FOLLOW_INTERVAL_S)
        for prefix, tail in tails.items():
            _echo_lines(prefix, tail.new_lines())


def _echo_lines(prefix: str, lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(f"{prefix}{line}")
