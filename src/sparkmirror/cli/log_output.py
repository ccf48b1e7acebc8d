"""Where the log lines of a worker or mirror go, and their format.

Standard output has all lines. If `LOG_DIR` is set, its file `kafka-connect.log` has them too; a
program such as logrotate may move the file away, and a new one is made. `--log-format`, or the
variable `SPARKMIRROR_LOG_FORMAT` where a script of Kafka's has no such option, chooses the format:

connect   Connect's log pattern: `[2026-11-17 09:30:00,123] INFO [c|task-0] text (logger:line)`
json      one JSON object in each line
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any, Final

import click

from sparkmirror import logging_context
from sparkmirror.errors import ConfigError

log = logging.getLogger(__name__)

LOG_DIRECTORY_VARIABLE: Final = "LOG_DIR"
LOG_FORMAT_VARIABLE: Final = "SPARKMIRROR_LOG_FORMAT"
LOG_FILE_NAME: Final = "kafka-connect.log"


class LogFormat(StrEnum):
    """Connect's pattern, or one JSON object per line. The values are those of `--log-format`."""

    CONNECT = "connect"
    JSON = "json"

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> LogFormat:
        """Return the format of the variable, else Connect's. Raises ConfigError."""
        name = environment.get(LOG_FORMAT_VARIABLE) or cls.CONNECT
        try:
            return cls(name.lower())
        except ValueError:
            message = f"{LOG_FORMAT_VARIABLE}={name}: no such format; set {' or '.join(cls)}"
            raise ConfigError.of(LOG_FORMAT_VARIABLE, message) from None

    def formatter(self) -> logging.Formatter:
        if self is LogFormat.JSON:
            return JsonFormatter()
        return logging.Formatter(logging_context.FORMAT)


LOG_FORMAT_OPTION: Final = click.option(
    "--log-format",
    type=click.Choice(list(LogFormat)),
    default=LogFormat.CONNECT,
    envvar=LOG_FORMAT_VARIABLE,
    help="Connect's log pattern, or a JSON object in each line.",
)
"""The option of the commands that run a worker or a mirror."""


class JsonFormatter(logging.Formatter):
    """Renders a record as one JSON object in one line. The time is in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. `context` is there inside a connector, `exception` with a traceback."""
        at = datetime.fromtimestamp(record.created, UTC)
        values: dict[str, Any] = {
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.__dict__["level"],
            "logger": record.name,
            "line": record.lineno,
            "context": record.__dict__["context"].strip("[] "),
            "message": record.getMessage() + record.__dict__["repeats"],
            "exception": self.formatException(record.exc_info) if record.exc_info else "",
        }
        return json.dumps({name: value for name, value in values.items() if value != ""})


def install_log(log_format: LogFormat, environment: Mapping[str, str]) -> None:
    """Send log lines to standard output and to the file of `LOG_DIR`. Call it once per process."""
    console = logging.StreamHandler(sys.stdout)
    logging_context.add_handler(console, log_format.formatter())
    logging.getLogger().setLevel(logging.INFO)
    directory = environment.get(LOG_DIRECTORY_VARIABLE)
    if not directory:
        return
    file = Path(directory) / LOG_FILE_NAME
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if _is_standard_output(file):
            return
        handler = WatchedFileHandler(file, encoding="utf-8")
    except OSError as error:
        log.warning(
            "%s=%s: %s cannot be written: %s. The log is on standard output only.",
            LOG_DIRECTORY_VARIABLE,
            directory,
            file,
            error.strerror,
        )
        return
    logging_context.add_handler(handler, log_format.formatter())


def _is_standard_output(file: Path) -> bool:
    """Whether standard output is the file already, as with `-daemon` and in a systemd unit."""
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), file.stat())
    except (OSError, ValueError):
        return False
