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
from sparkmirror.config import properties
from sparkmirror.config.dedicated import Dedicated
from sparkmirror.config.explain import Explanation, explain, explain_all
from sparkmirror.config.landings import compiled
from sparkmirror.config.parts import Part
from sparkmirror.config.properties import Properties
from sparkmirror.config.review import review_file
from sparkmirror.config.suggestions import suggestion
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.worker_file import looks_like_worker_file
from sparkmirror.errors import ConfigError, Fault, PropertiesError
from sparkmirror.model import SourceAndTarget

WIDTH_OF_A_PIPE = 160
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
    dedicated = _open(file)
    running = dedicated.flows_to_run([*clusters, *more])
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
    type=click.Choice([part.value for part in Part]),
    help="One connector, or the worker.",
)
@_format
def explain_(file: Path, key: str | None, flow: str | None, part: str | None, form: str) -> None:
    """Say for each setting of a flow which line of FILE it comes from, and what it overrode.

    KEY is a setting (tasks.max), or a key as FILE writes it (A->B.tasks.max).
    """
    dedicated = _open(file)
    chosen = [_flow(dedicated, flow)] if flow else dedicated.flows_to_run()
    parts = [Part(part)] if part else list(Part)
    places = [(one, each) for one in chosen for each in parts]
    found = _explanations(dedicated, places, key)
    if form == "json":
        _print_json(config_json.explanations(found))
    elif key:
        config_tables.show_reasons(_console(), found)
    else:
        config_tables.show_settings(_console(), found)


@config.command()
@_file
@_format
def validate(file: Path, form: str) -> None:
    """Find all faults of FILE at once, mm2.properties or a worker's; exit 1 if there are any."""
    review = review_file(properties.load(file), os.environ)
    if form == "json":
        _print_json(config_json.review(review))
    else:
        config_tables.show_review(_console(), str(file), review)
    if review.objections:
        raise SystemExit(1)


def _open(path: Path) -> Dedicated:
    file = properties.load(path)
    if looks_like_worker_file(file):
        message = "is a worker's file and has no flows; sparkmirror config validate checks it"
        raise PropertiesError(file.file, None, message)
    try:
        return Dedicated.open(file, os.environ)
    except ConfigError as error:
        raise ConfigError(
            [_located(file, fault) for fault in error.faults], where=file.file
        ) from None


def _located(file: Properties, fault: Fault) -> Fault:
    line = file.lines.get(fault.key)
    return fault if line is None else Fault(fault.key, f"line {line}: {fault.message}")


def _flow(dedicated: Dedicated, text: str) -> SourceAndTarget:
    for pair in dedicated.pairs:
        if str(pair) == text.strip():
            return pair
    known = ", ".join(map(str, dedicated.pairs))
    raise click.BadParameter(f"{text!r} is none of {known}", param_hint="--flow")


Places = Iterable[tuple[SourceAndTarget, Part]]


def _explanations(dedicated: Dedicated, places: Places, key: str | None) -> list[Explanation]:
    """All settings; or one, by its own name or by the name that the file has for it."""
    places = list(places)
    if key is None:
        return [found for flow, part in places for found in explain_all(dedicated, flow, part)]
    named = [
        explain(dedicated, flow, part, key)
        for flow, part in places
        if key in part.table or key in compiled(dedicated, flow, part)
    ]
    if named:
        return named
    fed = [
        explain(dedicated, flow, part, name)
        for flow, part in places
        for name, setting in compiled(dedicated, flow, part).items()
        if any(candidate.origin.key == key for candidate in setting.candidates)
    ]
    if fed:
        return fed
    raise _unknown(dedicated, key)


def _unknown(dedicated: Dedicated, key: str) -> ConfigError:
    if key in dedicated.said:
        line = dedicated.said[key].origin.line
        if key in DEDICATED or key in dedicated.engine_config():
            message = f"is read by the process itself (line {line}), not by a flow"
        else:
            message = f"reaches no flow (line {line}); sparkmirror config validate says why"
        return ConfigError.of(key, f"{key} {message}", where=dedicated.file.file)
    known = {name for part in Part for name in part.table.names} | set(dedicated.said)
    meant = suggestion(key, sorted(known))
    advice = f"; did you mean {meant}?" if meant else ""
    return ConfigError.of(key, f"Nothing is called {key}{advice}", where=dedicated.file.file)


def _console() -> rich.console.Console:
    console = rich.console.Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH_OF_A_PIPE
    return console


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))
