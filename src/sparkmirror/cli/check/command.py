"""`sparkmirror check`: opens the connections that a file describes, and starts nothing.

Exit codes: 0 if a start would succeed, 1 if the file has faults, 2 if a cluster cannot be reached,
refuses a login, or lacks a right.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path

import click

from sparkmirror.cli.check import json_output, text_output
from sparkmirror.cli.check.clients_and_rights import (
    connector_needs,
    dedicated_file_needs,
    worker_file_needs,
)
from sparkmirror.cli.check.config_lines_of_errors import add_written_keys
from sparkmirror.cli.check.connection_check import ConnectionChecker
from sparkmirror.cli.check.needed_rights import ClientNeeds
from sparkmirror.cli.config.allowlist_environment import operator_environment
from sparkmirror.cli.config.command import validation_report
from sparkmirror.cli.config.connector_json_validation import (
    ConnectorWorker,
    is_connector_json,
    read_connectors,
)
from sparkmirror.cli.config.options import (
    clusters_option,
    file_argument,
    format_option,
    worker_option,
)
from sparkmirror.cli.config.start_validation import split_aliases, without_log_lines
from sparkmirror.cli.config.text_output import new_console, show_validation_report
from sparkmirror.config.files import properties
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.worker_file import WorkerFile, is_worker_file

FAULTY_FILE = 1
PROBLEMS = 2


@click.command()
@file_argument
@worker_option
@clusters_option
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1),
    default=8.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a broker may take to answer.",
)
@click.option(
    "--acls/--no-acls",
    default=True,
    show_default=True,
    help="Print the kafka-acls.sh lines for least privilege.",
)
@format_option
def check(
    file: Path, worker: Path | None, clusters: str, timeout_s: float, acls: bool, form: str
) -> None:
    """Connect as FILE says, and check logins and rights. Changes nothing.

    FILE is an mm2.properties, a worker's file, or JSON with connectors as the REST API takes them.
    Opens every connection that a start opens, and names what a flow needs and lacks. Exit code 0
    only if a start would succeed; 1 for faults of FILE, 2 for anything that is missing.
    """
    targets = split_aliases(clusters)
    with without_log_lines():
        report = validation_report(file, worker, targets)
        if report.errors:
            show_validation_report(new_console(stderr=True), str(file), report)
            raise SystemExit(FAULTY_FILE)
        needs = _read_needs(file, worker, targets)
        checks = ConnectionChecker(needs, timeout_s=timeout_s, on_progress=_show_progress).check()
        checks = add_written_keys(checks, _written_properties(file, worker))
    if form == "json":
        click.echo(json.dumps(json_output.report(checks), indent=2))
    else:
        for line in text_output.report_lines(checks):
            click.echo(line)
        if acls:
            for line in text_output.acls_lines(checks):
                click.echo(line)
    if not all(one.is_good for one in checks):
        raise SystemExit(PROBLEMS)


def _read_needs(file: Path, worker: Path | None, targets: Collection[str]) -> list[ClientNeeds]:
    data = properties.read_bytes(file)
    if is_connector_json(data):
        if worker is None:
            return connector_needs(read_connectors(data, ConnectorWorker()), None)
        worker_file = properties.load_properties(worker)
        os.environ.update(operator_environment(worker_file.mapping, os.environ))
        opened = WorkerFile.open(worker_file, os.environ)
        known = ConnectorWorker.from_file(opened)
        return connector_needs(read_connectors(data, known), known.properties)
    parsed = properties.parse_properties(data, file=str(file))
    os.environ.update(operator_environment(parsed.mapping, os.environ))
    if is_worker_file(parsed):
        return worker_file_needs(WorkerFile.open(parsed, os.environ).expand().values)
    return dedicated_file_needs(MirrorMakerConfig.open(parsed, os.environ), targets)


def _written_properties(file: Path, worker: Path | None) -> properties.Properties:
    """Return the file with the settings of clients; without lines for connector JSON alone."""
    data = properties.read_bytes(file)
    if not is_connector_json(data):
        return properties.parse_properties(data, file=str(file))
    return (
        properties.load_properties(worker) if worker else properties.parse_properties(b"", file="")
    )


def _show_progress(text: str) -> None:
    click.echo(f"Checking {text} ...", err=True)
