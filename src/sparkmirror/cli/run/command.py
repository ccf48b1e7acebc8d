"""`sparkmirror run`: every flow of an mm2.properties in one process, as MirrorMaker 2 does."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

import click

from sparkmirror.cli.garbage_collection import garbage_collection_paused
from sparkmirror.cli.log_output import LOG_FORMAT_OPTION, LogFormat
from sparkmirror.engine.supervisor.idle_driver import IdleDriver


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--clusters",
    metavar="ALIAS[,ALIAS...]",
    default="",
    help="Run only the flows into these clusters; all of them by default.",
)
@LOG_FORMAT_OPTION
def run(file: Path, clusters: str, log_format: str) -> int:
    """Mirror as an mm2.properties says, as connect-mirror-maker.sh does.

    FILE names clusters and flows. The REST API for all flows listens on this computer only, unless
    FILE says otherwise. SIGTERM or Ctrl-C drains and ends it; a second one ends it at once.
    """
    targets = [alias.strip() for alias in clusters.split(",") if alias.strip()]
    return run_flows(file, targets, LogFormat(log_format))


def run_flows(file: Path, targets: Collection[str], log_format: LogFormat) -> int:
    """Run a node until a signal ends it; returns the exit code. Raises ConfigError."""
    with ExitStack() as stack:
        driver = _start_driver()
        if driver is not None:
            stack.enter_context(driver)
        with garbage_collection_paused():
            # Imported here because the driver process imports at the same time.
            from sparkmirror.cli.run.dedicated_node import run_dedicated_node
        return run_dedicated_node(file, targets, log_format, driver)


def _start_driver() -> IdleDriver | None:
    """Start a driver process; None if that is not possible: the start of Spark says why."""
    try:
        return IdleDriver()
    except OSError:
        return None
