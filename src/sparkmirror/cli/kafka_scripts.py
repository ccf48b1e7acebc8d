"""Entry points with the names of Kafka's scripts: same flags, usage texts and exit codes.

connect-mirror-maker.sh [-daemon] mm2.properties [--clusters CLUSTER ...]
connect-distributed.sh [-daemon] connect-distributed.properties
kafka-mirror-maker.sh --consumer.config F --producer.config F --include REGEX   (MirrorMaker 1)

exit code   255   connect-mirror-maker cannot read its arguments
            1     another script cannot read its arguments, or a herder has died
            2     the start failed
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from sparkmirror.cli.log_output import (
    LOG_DIRECTORY_VARIABLE,
    LOG_FILE_NAME,
    LogFormat,
    install_log,
)
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

EXIT_BAD_ARGUMENTS = 255
EXIT_USAGE = 1
EXIT_ERROR = 2
DAEMON_FLAG = "-daemon"


class _Parser(argparse.ArgumentParser):
    """Ends with the exit code of Java's parser, also after `--help`."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        sys.stderr.write(f"{self.prog}: error: {message}\n")
        sys.exit(EXIT_BAD_ARGUMENTS)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if message:
            sys.stderr.write(message)
        sys.exit(EXIT_BAD_ARGUMENTS)


def connect_mirror_maker(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run all flows of an mm2.properties file."""
    given = _daemonize("connect-mirror-maker", sys.argv[1:] if arguments is None else arguments)
    parser = _Parser(prog="connect-mirror-maker", description="MirrorMaker 2.0 driver")
    parser.add_argument("config", metavar="mm2.properties", help="MM2 configuration file.")
    parser.add_argument(
        "--clusters",
        nargs="+",
        action="extend",
        default=[],
        metavar="CLUSTER",
        help="Target cluster to use for this node.",
    )
    chosen = parser.parse_args(given)
    file = Path(chosen.config)
    if not file.exists() or not os.access(file, os.R_OK):
        parser.error(f"argument  config:  Insufficient permissions to read file: '{file}'")

    def run() -> int:
        from sparkmirror.cli.run.command import run_flows

        return run_flows(file, chosen.clusters, LogFormat.of(os.environ))

    _run(run)


def connect_distributed(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a Connect worker."""
    given = _daemonize("connect-distributed", sys.argv[1:] if arguments is None else arguments)
    if not given or "--help" in given:
        sys.stdout.write("Usage: ConnectDistributed worker.properties\n")
        sys.exit(EXIT_USAGE)

    def run() -> int:
        from sparkmirror.cli.worker import run_worker

        return run_worker(Path(given[0]), LogFormat.of(os.environ))

    _run(run)


def kafka_mirror_maker(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a one-way mirror with equal topic names."""
    from sparkmirror.cli.mirror_maker_1 import MirrorMaker1Arguments, run_mirror_maker_1

    given = _daemonize("kafka-mirror-maker", sys.argv[1:] if arguments is None else arguments)
    try:
        chosen = MirrorMaker1Arguments.parse(given)
    except MirrorError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(EXIT_USAGE)
    _run(lambda: run_mirror_maker_1(chosen, LogFormat.of(os.environ)))


def _run(command: Callable[[], int]) -> NoReturn:
    try:
        code = command()
    except (MirrorError, OSError) as error:
        if not logging.getLogger().handlers:
            install_log(LogFormat.CONNECT, os.environ)
        log.error("Stopping due to error: %s", error)
        sys.exit(EXIT_ERROR)
    sys.exit(code)


def _daemonize(name: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments if the first one is not `-daemon`.

    Otherwise start the script again in the background, with its output in the file
    `kafka-connect.log` of `$LOG_DIR`, or of `logs`, and exit.
    """
    given = list(arguments)
    if DAEMON_FLAG not in given[:1]:
        return given
    file = Path(os.environ.get(LOG_DIRECTORY_VARIABLE) or "logs") / LOG_FILE_NAME
    entry = name.replace("-", "_")
    code = f"from sparkmirror.cli.kafka_scripts import {entry}; {entry}()"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        out = file.open("ab")
    except OSError as error:
        sys.stderr.write(
            f"{name}: {file} cannot be written: {error.strerror}. "
            f"Name another directory: export {LOG_DIRECTORY_VARIABLE}=/tmp/logs\n"
        )
        sys.exit(EXIT_USAGE)
    with out:
        subprocess.Popen(
            [sys.executable, "-c", code, *given[1:]],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    sys.exit(0)
