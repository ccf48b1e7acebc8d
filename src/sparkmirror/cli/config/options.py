"""The arguments and options that commands about a file share."""

from __future__ import annotations

from pathlib import Path

import click

file_argument = click.argument("file", type=click.Path(path_type=Path))
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text, or JSON for programs.",
)
worker_option = click.option(
    "--worker",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="For connector JSON: the file of the worker that shall run the connectors.",
)
clusters_option = click.option(
    "--clusters",
    metavar="ALIAS[,ALIAS...]",
    default="",
    help="For an mm2.properties: only the flows into these clusters, as `sparkmirror run` has it.",
)
