"""`sparkmirror copy`: topics from one cluster to another, once or for as long as it runs.

The command and its options. What they mean is `copy_said`, what then happens `copy_wiring`.
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
from sparkmirror.cli.copy.execution import RunOptions, run_copy
from sparkmirror.cli.copy.request_from_options import CopyOptions, build_request
from sparkmirror.copy.job import DataLossPolicy

PIPE_WIDTH = 500
"""Where the output goes to a file or another program, no name is broken into pieces."""


class _CommandOptions(CopyOptions):
    """All options: what to copy, and in what manner."""

    until_caught_up: bool
    receipts: str | None
    master: str
    conf: Mapping[str, str]
    yes: bool
    dry_run: bool


def copy_command(engine: EngineFactory) -> click.Command:
    """Make the command, for an engine."""

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
        help="Topics not to copy, written alike.",
    )
    @click.option(
        "--until-caught-up",
        is_flag=True,
        help="End when all that is there now is on the target; else go on until Ctrl-C.",
    )
    @click.option(
        "--start",
        callback=options.option_callback(options.parse_start),
        metavar="WHERE",
        help="Where new partitions begin: earliest (default), latest, a time"
        " (2026-01-31T12:00Z or ms), offsets:FILE.json.",
    )
    @click.option(
        "--policy",
        default="identity",
        show_default=True,
        callback=options.option_callback(options.parse_policy),
        metavar="POLICY",
        help="What copies are called: identity (orders), default (source.orders), a Java name.",
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
        help="At most so many bytes a second in all: 50MB.",
    )
    @click.option("--tasks", type=_count, metavar="N", help="Tasks; one per two cores if not said.")
    @click.option(
        "--on-loss",
        type=click.Choice([choice.value for choice in DataLossPolicy]),
        default=DataLossPolicy.HALT.value,
        show_default=True,
        help="If the source deleted what was next: halt, skip it, restart the partition.",
    )
    @click.option("--read-uncommitted", is_flag=True, help="Copy open and aborted transactions.")
    @click.option(
        "--exactly-once",
        is_flag=True,
        help="Copy in transactions: for readers at read_committed, whatever breaks.",
    )
    @click.option(
        "--commit-interval",
        type=click.IntRange(min=1, max=10_000),
        metavar="MS",
        help="With --exactly-once: commit no more often than this.  [default: 100]",
    )
    @click.option(
        "--replication-factor",
        type=_count,
        metavar="N",
        help="Of new topics; as at the source if not said.",
    )
    @click.option(
        "--name",
        callback=options.option_callback(options.parse_name),
        metavar="NAME",
        help="The connector, if several copy at the same time.",
    )
    @click.option(
        "--ledger",
        "receipts",
        metavar="DIR",
        help="Where receipts of what was copied are kept, as Parquet.",
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
        "--yes", "-y", is_flag=True, help="Append to topics with records of others without asking."
    )
    @click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
    def copy(**said: Unpack[_CommandOptions]) -> None:
        """Copy topics from one Kafka cluster to another.

        Positions are remembered on the target, so the same command goes on where it stood.
        """
        manner = RunOptions(
            until_caught_up=said["until_caught_up"],
            receipts=said["receipts"],
            master=said["master"],
            conf=said["conf"],
            yes=said["yes"],
            dry_run=said["dry_run"],
        )
        request = build_request(said, os.environ)
        code = run_copy(request, manner, engine, _console())
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
