"""Runs the flows of an mm2.properties in this process, until a signal ends it."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path

from sparkmirror.cli.config.allowlist_environment import operator_environment
from sparkmirror.cli.config.start_validation import require_valid_dedicated_file
from sparkmirror.cli.kafka_opts import java_notes, with_metrics_listener
from sparkmirror.cli.log_output import LogFormat, install_log
from sparkmirror.config.files.client_config_line_numbers import with_written_keys
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.review.exposed_files import exposed_file_notices
from sparkmirror.engine.supervisor.idle_driver import IdleDriver
from sparkmirror.worker.mirror_maker import MirrorMaker
from sparkmirror.worker.shutdown_signal import ShutdownSignal

log = logging.getLogger(__name__)


def run_dedicated_node(
    file: Path, targets: Collection[str], log_format: LogFormat, driver: IdleDriver | None
) -> int:
    """Run a node until a signal ends it; returns the exit code.

    Raises ConfigError, before anything but `driver` is started, if `config validate` finds a fault.
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
    return MirrorMaker(opened, targets, os.environ, driver).run(shutdown)
