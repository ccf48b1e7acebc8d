"""`sparkmirror config`: lists, explains and validates configurations. Starts nothing.

`tables` and `json_output` print the results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path

import click

from sparkmirror.cli.config import json_output, text_output
from sparkmirror.cli.config.allowlist_environment import operator_environment
from sparkmirror.cli.config.connector_json_validation import (
    ConnectorWorker,
    is_connector_json,
    validate_connectors,
)
from sparkmirror.cli.config.options import (
    clusters_option,
    file_argument,
    format_option,
    worker_option,
)
from sparkmirror.cli.config.start_validation import split_aliases, without_log_lines
from sparkmirror.cli.config.worker_start_checks import worker_start_checks
from sparkmirror.config.definition.connector_config_validation import WorkerCapabilities
from sparkmirror.config.files import properties
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.files.worker_file import WorkerFile, is_worker_file
from sparkmirror.config.review.explain import (
    SettingExplanation,
    explain,
    explain_all,
    find_explanation,
    is_client_property,
)
from sparkmirror.config.review.file_validation import validate_dedicated_file, validate_file
from sparkmirror.config.review.findings import ValidationReport
from sparkmirror.config.review.key_usage import compiled_config
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.connect.connectors.source.dead_letter_topics import transformation_faults
from sparkmirror.engine.supervisor.query_check import QueryCheck
from sparkmirror.errors import ConfigError, ConfigFault, PropertiesError
from sparkmirror.model import SourceAndTarget


@click.group()
def config() -> None:
    """Explain and check mm2.properties, worker files and connector JSON."""


@config.command()
@file_argument
@click.option("--clusters", multiple=True, metavar="ALIAS...", help="Only flows into these.")
@click.argument("more", nargs=-1, metavar="")
@format_option
def flows(file: Path, clusters: tuple[str, ...], more: tuple[str, ...], form: str) -> None:
    """List the flows that FILE runs, and their connectors."""
    if more and not clusters:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    opened = _load_dedicated(file)
    running = opened.require_flows([*clusters, *more])
    if form == "json":
        _print_json(json_output.flows(opened, running))
    else:
        text_output.show_flows(text_output.new_console(), opened, running)


@config.command("explain")
@file_argument
@click.argument("key", required=False)
@click.option("--flow", metavar="A->B", help="One flow only.")
@click.option(
    "--connector",
    "part",
    type=click.Choice([part.value for part in FlowPart]),
    help="One connector, or the worker.",
)
@format_option
def explain_(file: Path, key: str | None, flow: str | None, part: str | None, form: str) -> None:
    """Say for each setting of a flow which line of FILE it comes from, and what it overrode.

    KEY is a setting (tasks.max), a property of a client (source.consumer.isolation.level), or a key
    as FILE writes it (A->B.tasks.max).
    """
    opened = _load_dedicated(file)
    chosen = [_find_flow(opened, flow)] if flow else opened.require_flows()
    parts = [FlowPart(part)] if part else list(FlowPart)
    explanations = _explanations(opened, [(one, each) for one in chosen for each in parts], key)
    if form == "json":
        _print_json(json_output.explanations(explanations))
    elif key:
        text_output.show_explanations(text_output.new_console(), opened, explanations)
    else:
        text_output.show_settings(text_output.new_console(), explanations)


@config.command()
@file_argument
@worker_option
@clusters_option
@format_option
def validate(file: Path, worker: Path | None, clusters: str, form: str) -> None:
    """Find all faults of FILE at once; exit 1 if there are any.

    FILE is an mm2.properties, a worker's file, or JSON with connectors as the REST API takes them.
    Finds what the start of a worker refuses, but starts nothing and connects to nothing:
    `sparkmirror check` connects.
    """
    with without_log_lines():
        report = validation_report(file, worker, split_aliases(clusters))
    if form == "json":
        _print_json(json_output.validation_report(report))
    else:
        text_output.show_validation_report(text_output.new_console(), str(file), report)
    if report.errors:
        raise SystemExit(1)


def validation_report(
    file: Path, worker: Path | None, targets: Collection[str]
) -> ValidationReport:
    """Return all findings about a file. Raises PropertiesError if it cannot be read.

    Changes the environment of this process: what the file allows to connectors is added.
    """
    data = properties.read_bytes(file)
    if not is_connector_json(data):
        if worker is not None:
            raise click.UsageError("--worker is for connector JSON only")
        parsed = properties.parse_properties(data, file=str(file))
        os.environ.update(operator_environment(parsed.mapping, os.environ))
        checks = worker_start_checks(os.environ, _query_check().faults)
        if targets:
            return validate_dedicated_file(parsed, os.environ, checks, targets)
        return validate_file(parsed, os.environ, checks)
    if targets:
        raise click.UsageError("--clusters is for an mm2.properties only")
    if worker is None:
        faults = _query_check().faults
        plain = ConnectorWorker(capabilities=WorkerCapabilities(transformation_faults=faults))
        return validate_connectors(str(file), data, plain, worker_start_checks(os.environ))
    worker_file = properties.load_properties(worker)
    os.environ.update(operator_environment(worker_file.mapping, os.environ))
    opened = WorkerFile.open(worker_file, os.environ)
    checks = worker_start_checks(os.environ)
    named = ConnectorWorker.from_file(opened, _query_check().faults)
    return validate_connectors(str(file), data, named, checks)


def _load_dedicated(path: Path) -> MirrorMakerConfig:
    data = properties.read_bytes(path)
    if is_connector_json(data):
        message = "is JSON and has no flows; sparkmirror config validate checks connectors"
        raise PropertiesError(str(path), None, message)
    file = properties.parse_properties(data, file=str(path))
    if is_worker_file(file):
        message = "is a worker's file and has no flows; sparkmirror config validate checks it"
        raise PropertiesError(file.file, None, message)
    try:
        return MirrorMakerConfig.open(file, os.environ)
    except ConfigError as error:
        raise ConfigError(
            [_with_line(file, fault) for fault in error.faults], where=file.file
        ) from None


def _with_line(file: Properties, fault: ConfigFault) -> ConfigFault:
    line = file.lines.get(fault.key)
    return fault if line is None else ConfigFault(fault.key, f"line {line}: {fault.message}")


def _find_flow(opened: MirrorMakerConfig, text: str) -> SourceAndTarget:
    for pair in opened.cluster_pairs:
        if str(pair) == text.strip():
            return pair
    known = ", ".join(map(str, opened.cluster_pairs))
    raise click.BadParameter(f"{text!r} is none of {known}", param_hint="--flow")


def _explanations(
    opened: MirrorMakerConfig,
    flow_parts: Sequence[tuple[SourceAndTarget, FlowPart]],
    key: str | None,
) -> list[SettingExplanation]:
    """All settings; or one, by its own name or by the name that the file has for it."""
    if key is None:
        return [one for flow, part in flow_parts for one in explain_all(opened, flow, part)]
    by_name = [find_explanation(opened, flow, part, key) for flow, part in flow_parts]
    if any(by_name):
        return [one for one in by_name if one is not None]
    by_file_key = [
        explain(opened, flow, part, name)
        for flow, part in flow_parts
        for name, setting in compiled_config(opened, flow, part).items()
        if any(candidate.origin.key == key for candidate in setting.candidates)
    ]
    if by_file_key:
        return by_file_key
    raise _unknown_key_error(opened, key)


def _unknown_key_error(opened: MirrorMakerConfig, key: str) -> ConfigError:
    where = opened.properties.file
    if key in opened.file_values:
        line = opened.file_values[key].origin.line
        if key in DEDICATED or key in opened.engine_config():
            message = f"is read by the process itself (line {line}), not by a flow"
        else:
            message = f"reaches no flow (line {line}); sparkmirror config validate says why"
        return ConfigError.of(key, f"{key} {message}", where=where)
    if is_client_property(key):
        message = f"No key of the file sets {key}: the client uses its own default"
        return ConfigError.of(key, message, where=where)
    known = {name for part in FlowPart for name in part.config_def.names} | set(opened.file_values)
    meant = closest_name(key, sorted(known))
    advice = f"; did you mean {meant}?" if meant else ""
    return ConfigError.of(key, f"Nothing is called {key}{advice}", where=where)


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))


def _query_check() -> QueryCheck:
    return QueryCheck(os.environ, other_faults=transformation_faults)
