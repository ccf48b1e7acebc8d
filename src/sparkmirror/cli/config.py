"""`sparkmirror config`: what a file says, why, and what is wrong with it. Starts nothing.

Commands over the config room; how they look is in `config_tables` and `config_json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import click
import rich.console

from sparkmirror.cli import config_json, config_tables
from sparkmirror.cli.config_start_checks import start_checks
from sparkmirror.config.files import properties
from sparkmirror.config.files.flow_parts import FlowPart
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.files.worker_file import is_worker_file
from sparkmirror.config.review.explain import SettingExplanation, explain, explain_all
from sparkmirror.config.review.file_validation import validate_file
from sparkmirror.config.review.key_usage import compiled_config
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.errors import ConfigError, ConfigFault, PropertiesError
from sparkmirror.model import SourceAndTarget

PIPE_WIDTH = 160
"""Nobody's screen is asked when the output goes to a file or another program."""

_file = click.argument("file", type=click.Path(path_type=Path))
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)


@click.group()
def config() -> None:
    """Explain and check mm2.properties and worker files."""


@config.command()
@_file
@click.option("--clusters", multiple=True, metavar="ALIAS...", help="Only flows into these.")
@click.argument("more", nargs=-1, metavar="")
@_format
def flows(file: Path, clusters: tuple[str, ...], more: tuple[str, ...], form: str) -> None:
    """List the flows that FILE runs, and their connectors."""
    if more and not clusters:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    dedicated = _load_dedicated(file)
    running = dedicated.require_flows([*clusters, *more])
    if form == "json":
        _print_json(config_json.flows(dedicated, running))
    else:
        config_tables.show_flows(_console(), dedicated, running)


@config.command("explain")
@_file
@click.argument("key", required=False)
@click.option("--flow", metavar="A->B", help="One flow only.")
@click.option(
    "--connector",
    "part",
    type=click.Choice([part.value for part in FlowPart]),
    help="One connector, or the worker.",
)
@_format
def explain_(file: Path, key: str | None, flow: str | None, part: str | None, form: str) -> None:
    """Say for each setting of a flow which line of FILE it comes from, and what it overrode.

    KEY is a setting (tasks.max), or a key as FILE writes it (A->B.tasks.max).
    """
    dedicated = _load_dedicated(file)
    chosen = [_find_flow(dedicated, flow)] if flow else dedicated.require_flows()
    parts = [FlowPart(part)] if part else list(FlowPart)
    places = [(one, each) for one in chosen for each in parts]
    found = _explanations(dedicated, places, key)
    if form == "json":
        _print_json(config_json.explanations(found))
    elif key:
        config_tables.show_explanations(_console(), found)
    else:
        config_tables.show_settings(_console(), found)


@config.command()
@_file
@_format
def validate(file: Path, form: str) -> None:
    """Find all faults of FILE at once, mm2.properties or a worker's; exit 1 if there are any."""
    review = validate_file(properties.load_properties(file), os.environ, start_checks(os.environ))
    if form == "json":
        _print_json(config_json.validation_report(review))
    else:
        config_tables.show_validation_report(_console(), str(file), review)
    if review.errors:
        raise SystemExit(1)


def _load_dedicated(path: Path) -> MirrorMakerConfig:
    file = properties.load_properties(path)
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


def _find_flow(dedicated: MirrorMakerConfig, text: str) -> SourceAndTarget:
    for pair in dedicated.cluster_pairs:
        if str(pair) == text.strip():
            return pair
    known = ", ".join(map(str, dedicated.cluster_pairs))
    raise click.BadParameter(f"{text!r} is none of {known}", param_hint="--flow")


FlowPartPairs = Iterable[tuple[SourceAndTarget, FlowPart]]


def _explanations(
    dedicated: MirrorMakerConfig, places: FlowPartPairs, key: str | None
) -> list[SettingExplanation]:
    """All settings; or one, by its own name or by the name that the file has for it."""
    places = list(places)
    if key is None:
        return [found for flow, part in places for found in explain_all(dedicated, flow, part)]
    named = [
        explain(dedicated, flow, part, key)
        for flow, part in places
        if key in part.config_def or key in compiled_config(dedicated, flow, part)
    ]
    if named:
        return named
    fed = [
        explain(dedicated, flow, part, name)
        for flow, part in places
        for name, setting in compiled_config(dedicated, flow, part).items()
        if any(candidate.origin.key == key for candidate in setting.candidates)
    ]
    if fed:
        return fed
    raise _unknown_key_error(dedicated, key)


def _unknown_key_error(dedicated: MirrorMakerConfig, key: str) -> ConfigError:
    if key in dedicated.file_values:
        line = dedicated.file_values[key].origin.line
        if key in DEDICATED or key in dedicated.engine_config():
            message = f"is read by the process itself (line {line}), not by a flow"
        else:
            message = f"reaches no flow (line {line}); sparkmirror config validate says why"
        return ConfigError.of(key, f"{key} {message}", where=dedicated.properties.file)
    known = {name for part in FlowPart for name in part.config_def.names} | set(
        dedicated.file_values
    )
    meant = closest_name(key, sorted(known))
    advice = f"; did you mean {meant}?" if meant else ""
    return ConfigError.of(key, f"Nothing is called {key}{advice}", where=dedicated.properties.file)


def _console() -> rich.console.Console:
    console = rich.console.Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))
