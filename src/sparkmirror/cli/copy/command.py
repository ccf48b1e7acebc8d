"""`sparkmirror copy`: the command and its options.

`cli.copy.request` builds the request from the options, `cli.copy.plan_and_run` runs it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

import click
import rich.console

from sparkmirror.cli.copy import options
from sparkmirror.cli.copy.engine import EngineFactory, spark_engine
from sparkmirror.cli.copy.plan_and_run import RunOptions, run_copy
from sparkmirror.cli.copy.request import CopyOptions, build_request
from sparkmirror.copy.job import DataLossPolicy

PIPE_WIDTH = 500
"""Wide enough that no name is wrapped in a file or a pipe."""


class _CommandOptions(CopyOptions):
    """All options: what to copy, and how to run it."""

    until_caught_up: bool
    receipts: str | None
    master: str
    conf: Mapping[str, str]
    yes: bool
    dry_run: bool


def copy_command(engine: EngineFactory) -> click.Command:
    """Create the command for an engine."""

    @click.command("copy", context_settings={"max_content_width": 110})
    @click.option(
        "--from",
        "source_servers",
        callback=options.option_callback(options.parse_servers),
        metavar="HOST:PORT,...",
        help="Brokers of the source.",
    )
    @click.option(
        "--to",
        "target_servers",
        callback=options.option_callback(options.parse_servers),
        metavar="HOST:PORT,...",
        help="Brokers of the target.",
    )
    @click.option(
        "--topics",
        required=True,
        callback=options.option_callback(options.parse_patterns),
        metavar="PATTERNS",
        help="Names or Java regular expressions, with commas between.",
    )
    @click.option(
        "--exclude",
        callback=options.option_callback(options.parse_patterns),
        metavar="PATTERNS",
        help="Topics not to copy; same syntax as --topics.",
    )
    @click.option(
        "--until-caught-up",
        is_flag=True,
        help="End when all records of now are on the target; otherwise copy until Ctrl-C.",
    )
    @click.option(
        "--start",
        callback=options.option_callback(options.parse_start),
        metavar="WHERE",
        help="Where new partitions start: earliest (default), latest, a time"
        " (2026-01-31T12:00Z or ms), offsets:FILE.json.",
    )
    @click.option(
        "--policy",
        default="identity",
        show_default=True,
        callback=options.option_callback(options.parse_policy),
        metavar="POLICY",
        help="Names of copies: identity (orders), default (source.orders), or a Java class name.",
    )
    @click.option(
        "--source-alias", default="source", show_default=True, callback=_alias, metavar="NAME"
    )
    @click.option(
        "--target-alias", default="target", show_default=True, callback=_alias, metavar="NAME"
    )
    @click.option(
        "--source-config",
        type=_file,
        metavar="FILE",
        help="Client properties of the source (security.protocol, sasl.*, ssl.*).",
    )
    @click.option(
        "--target-config", type=_file, metavar="FILE", help="Client properties of the target."
    )
    @click.option(
        "--rate",
        callback=options.option_callback(options.parse_rate),
        metavar="RATE",
        help="Limit of bytes per second for all tasks together: 50MB.",
    )
    @click.option("--tasks", type=_count, metavar="N", help="Tasks.  [default: one per two cores]")
    @click.option(
        "--on-loss",
        type=click.Choice([choice.value for choice in DataLossPolicy]),
        default=DataLossPolicy.HALT.value,
        show_default=True,
        help="If the source deleted the next records: halt, skip them, or restart the partition.",
    )
    @click.option("--read-uncommitted", is_flag=True, help="Copy open and aborted transactions.")
    @click.option(
        "--exactly-once",
        is_flag=True,
        help="Copy in transactions, for readers with isolation.level=read_committed.",
    )
    @click.option(
        "--commit-interval",
        type=click.IntRange(min=1, max=10_000),
        metavar="MS",
        help="With --exactly-once: commit at most once in this time.  [default: 100]",
    )
    @click.option(
        "--replication-factor",
        type=_count,
        metavar="N",
        help="Of new topics.  [default: as at the source]",
    )
    @click.option(
        "--name",
        callback=options.option_callback(options.parse_name),
        metavar="NAME",
        help="Connector name; needed if several copies run at the same time.",
    )
    @click.option(
        "--ledger",
        "receipts",
        metavar="DIR",
        help="Directory for the receipts of copied batches (Parquet).",
    )
    @click.option("--master", default="", metavar="URL", help="Spark's master: spark://...")
    @click.option(
        "--conf",
        multiple=True,
        callback=options.parse_conf,
        metavar="KEY=VALUE",
        help="A setting for Spark; may be repeated.",
    )
    @click.option(
        "--yes", "-y", is_flag=True, help="Append to topics with other records without asking."
    )
    @click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
    def copy(**values: Unpack[_CommandOptions]) -> None:
        """Copy topics from one Kafka cluster to another.

        The target stores the positions, so the same command continues where it ended.
        """
        run_options = RunOptions(
            until_caught_up=values["until_caught_up"],
            receipts=values["receipts"],
            master=values["master"],
            conf=values["conf"],
            yes=values["yes"],
            dry_run=values["dry_run"],
        )
        request = build_request(values, os.environ)
        code = run_copy(request, run_options, engine, _console())
        raise SystemExit(code)

    return copy


_count = click.IntRange(min=1)
_file = click.Path(path_type=Path)
_alias = options.option_callback(options.parse_alias)


def _console() -> rich.console.Console:
    console = rich.console.Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


copy = copy_command(spark_engine)
