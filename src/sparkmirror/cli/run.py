"""`sparkmirror run`: every flow of an mm2.properties in one process, as MirrorMaker 2 does."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path

import click

from sparkmirror.cli.config.allowlist_environment import operator_environment
from sparkmirror.cli.config.start_validation import require_valid_dedicated_file, split_aliases
from sparkmirror.cli.kafka_opts import java_notes, with_metrics_listener
from sparkmirror.cli.log_output import LOG_FORMAT_OPTION, LogFormat, install_log
from sparkmirror.config.files.client_config_line_numbers import with_written_keys
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.review.exposed_files import exposed_file_notices
from sparkmirror.worker.mirror_maker import MirrorMaker
from sparkmirror.worker.shutdown_signal import ShutdownSignal

log = logging.getLogger(__name__)


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
    return run_flows(file, split_aliases(clusters), LogFormat(log_format))


def run_flows(file: Path, targets: Collection[str], log_format: LogFormat) -> int:
    """Run a node until a signal ends it; returns the exit code.

    Raises ConfigError, before anything is started, if `config validate` finds a fault.
    """
    properties = with_metrics_listener(load_properties(file), os.environ)
    os.environ.update(operator_environment(properties.mapping, os.environ))
    require_valid_dedicated_file(properties, targets, os.environ)
    os.environ.update(with_written_keys(properties, os.environ))
    shutdown = ShutdownSignal()
    shutdown.install()
    install_log(log_format, os.environ)
    opened = MirrorMakerConfig.open(properties, os.environ)
    exposed = exposed_file_notices(properties, os.environ, with_read_files=False)
    for notice in (*java_notes(os.environ), *opened.notices, *exposed):
        log.warning("%s", notice)
    return MirrorMaker(opened, targets, os.environ).run(shutdown)
