"""`sparkmirror transform try`: the last records of a topic, before and after transformations."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final

import click

from sparkmirror.cli.config.options import format_option
from sparkmirror.cli.transform.source_connector_config import source_connector_config
from sparkmirror.cli.transform.trial import Trial, read_last_records, try_transformations

NOT_COPIED: Final = 2
"""The exit code if a record would hold its partition, or a mirror would refuse to run."""
MAX_RECORDS: Final = 10_000


@click.group()
def transform() -> None:
    """See what transformations make of records. Mirrors nothing."""


@transform.command("try")
@click.option("--topic", required=True, help="The topic of the source.")
@click.option(
    "--last",
    type=click.IntRange(1, MAX_RECORDS),
    default=10,
    show_default=True,
    metavar="N",
    help="How many records, of all partitions together.",
)
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An mm2.properties, or JSON with a source connector as the REST API takes it.",
)
@click.option("--flow", default="", metavar="A->B", help="The flow, if FILE has several.")
@click.option("--source", default="", metavar="HOST:PORT", help="The source, if FILE has none.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key of the source connector, for example transforms=mask. Wins over FILE.",
)
@format_option
def try_(
    topic: str,
    last: int,
    file: Path | None,
    flow: str,
    source: str,
    settings: tuple[str, ...],
    form: str,
) -> int:
    """Show the last records of a topic before and after the transformations of a flow.

    Reads from the source cluster only, and writes nothing. Exit code 2 if a record fails and would
    hold its partition, or if a mirror would refuse the transformations.
    """
    if file is None and not source:
        raise click.UsageError("name a file with --config, or the cluster with --source")
    config = source_connector_config(file, flow, source, settings)
    try_transformations(config, topic, ())  # faults of the config, before a cluster is asked
    trial = try_transformations(config, topic, read_last_records(config, topic, last))
    if form == "json":
        click.echo(json.dumps(_json_object(trial), indent=2))
    else:
        _print_text(trial, topic)
    is_held = any(record.result == "held" for record in trial.records)
    return NOT_COPIED if is_held or trial.refusals else 0


def _print_text(trial: Trial, topic: str) -> None:
    for record in trial.records:
        for line in record.text_lines():
            click.echo(line)
        click.echo()
    counts = Counter(record.result for record in trial.records)
    results = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    click.echo(f"{len(trial.records)} records of {topic}: {results or 'the topic is empty'}.")
    if trial.lane:
        click.echo(f"Lane {trial.lane}.")
    for refusal in trial.refusals:
        click.echo(f"A mirror refuses to run this. {refusal}.")


def _json_object(trial: Trial) -> dict[str, object]:
    return {
        "records": [record.json_object() for record in trial.records],
        "lane": trial.lane or None,
        "refusals": list(trial.refusals),
    }
