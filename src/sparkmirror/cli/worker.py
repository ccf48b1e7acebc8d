"""`sparkmirror worker`: a Connect worker that only mirrors, from connect-distributed.properties."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from sparkmirror.cli.config.allowlist_environment import operator_environment
from sparkmirror.cli.config.start_validation import require_valid_worker_file
from sparkmirror.cli.kafka_opts import java_notes, with_metrics_listener
from sparkmirror.cli.log_output import LOG_FORMAT_OPTION, LogFormat, install_log
from sparkmirror.config.files.client_config_line_numbers import with_written_keys
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.worker_file import WorkerFile
from sparkmirror.config.review.exposed_files import exposed_file_notices
from sparkmirror.worker.connect_worker import ConnectWorker
from sparkmirror.worker.shutdown_signal import ShutdownSignal

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.001
"""How long a thread may keep the interpreter while others wait. Dozens of connectors may start at
once, and a request waits for all of them."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@LOG_FORMAT_OPTION
def worker(file: Path, log_format: str) -> int:
    """Run a Connect worker for mirrors, as connect-distributed.sh does.

    FILE is the worker's properties file. Connectors are managed over its REST API. SIGTERM or
    Ctrl-C drains and ends it; a second one ends it at once.
    """
    return run_worker(file, LogFormat(log_format))


def run_worker(file: Path, log_format: LogFormat) -> int:
    """Run a worker until a signal ends it; returns the exit code.

    Raises ConfigError, before anything is started, if `config validate` finds a fault.
    """
    properties = with_metrics_listener(load_properties(file), os.environ)
    os.environ.update(operator_environment(properties.mapping, os.environ))
    require_valid_worker_file(properties, os.environ)
    os.environ.update(with_written_keys(properties, os.environ))
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    shutdown = ShutdownSignal()
    shutdown.install()
    install_log(log_format, os.environ)
    opened = WorkerFile.open(properties, os.environ)
    exposed = exposed_file_notices(properties, os.environ, with_read_files=False)
    for notice in (*java_notes(os.environ), *opened.notices, *exposed):
        log.warning("%s", notice)
    return ConnectWorker(opened, os.environ).run(shutdown)
