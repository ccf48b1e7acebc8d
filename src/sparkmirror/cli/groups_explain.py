"""`sparkmirror groups`: shows the translated offsets of consumer groups, and the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import rich.box
import rich.console
import rich.table
import rich.text

from sparkmirror.cli.worker_rest_client import DEFAULT_URL, WorkerRestClient

NO_GROUP_FOUND = 2


@click.group()
def groups() -> None:
    """See what a mirror does with consumer groups."""


@groups.command()
@click.argument("group", required=False)
@click.option("--url", default=DEFAULT_URL, show_default=True, help="The worker's REST API.")
def explain(group: str | None, url: str) -> int:
    """Say for each partition of GROUP (or of all groups) where it would go on, and why.

    Asks a running worker or dedicated node.
    """
    api = WorkerRestClient(url)
    console = rich.console.Console(highlight=False, soft_wrap=True)
    shown = 0
    connectors = api.connectors()
    for connector in connectors:
        found = [entry for entry in api.groups(connector.name) if group in (None, entry["group"])]
        if found:
            console.print(_table(connector.name, found))
            shown += len(found)
    if not shown:
        wanted = f"group {group}" if group else "any group"
        console.print(
            f"No checkpoint connector follows {wanted} yet: a group is followed, within 10 s, once"
            " groups and groups.exclude select it and it has committed an offset on a mirrored"
            " topic."
        )
        for connector in connectors if group else ():
            if reason := api.group_exclusion(connector.name, group or ""):
                console.print(f"{connector.name}: {reason}", markup=False)
        for connector in connectors:
            for error in connector.errors:
                console.print(f"{connector.name}: {error}", markup=False)
    return 0 if shown else NO_GROUP_FOUND


def _table(connector: str, found: list[Mapping[str, Any]]) -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, title=connector)
    for heading in ("group", "source", "offset", "target", "offset", "why"):
        table.add_column(heading, justify="right" if heading == "offset" else "left")
    for entry in found:
        remote = entry["remote"]
        reasons = [entry[key] for key in ("translated", "checkpoint", "written") if entry[key]]
        table.add_row(
            rich.text.Text(entry["group"]),
            rich.text.Text(f"{entry['topic']}-{entry['partition']}"),
            _offset_text(entry["upstream"]),
            rich.text.Text(f"{remote['topic']}-{remote['partition']}" if remote else "-"),
            _offset_text(entry["downstream"]),
            rich.text.Text("; ".join(dict.fromkeys(reasons))),
        )
    return table


def _offset_text(offset: int | None) -> str:
    return "-" if offset is None else str(offset)
