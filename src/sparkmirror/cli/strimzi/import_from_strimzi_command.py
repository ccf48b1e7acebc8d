"""`sparkmirror import strimzi`: writes an mm2.properties from a KafkaMirrorMaker2."""

from __future__ import annotations

from pathlib import Path

import click

from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_resources import (
    ImportedMirror,
    import_resources,
    listed_resources,
    secret_keys_of,
)
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_secret_files import SecretFiles
from sparkmirror.cli.strimzi.yaml_documents import load_documents
from sparkmirror.errors import AlreadyExists, ConfigError, PropertiesError
from sparkmirror.lab.properties_file import format_properties, write_properties

DEFAULT_OUTPUT = Path("mm2.properties")
DEFAULT_SECRETS = "/etc/secrets"
STANDARD_OUTPUT = "-"


@click.group("import")
def import_group() -> None:
    """Write an mm2.properties from the configuration of another program."""


@import_group.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default=DEFAULT_OUTPUT,
    show_default=True,
    help="The file to write; - for standard output.",
)
@click.option(
    "--secrets",
    default=DEFAULT_SECRETS,
    show_default=True,
    metavar="DIR",
    help="Where Secrets are mounted: a directory for each, a file for each of its keys.",
)
@click.option("--name", help="Only the resource with this name; all of them by default.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def strimzi(file: Path, output: Path, secrets: str, name: str | None, force: bool) -> None:
    """Write an mm2.properties from Strimzi's KafkaMirrorMaker2, v1 or v1beta2.

    FILE is YAML with one document or more. What the properties cannot express is listed, and so are
    the keys of Secrets that must be there as files.
    """
    is_printed = str(output) == STANDARD_OUTPUT
    if not is_printed and output.exists() and not force:
        raise AlreadyExists(f"{output} exists; name another file with --output, or add --force")
    documents = listed_resources(load_documents(file))
    files = SecretFiles(directory=secrets.rstrip("/"), known_keys=secret_keys_of(documents))
    try:
        imported = import_resources(documents, files, str(file), name)
    except ConfigError as error:
        for fault in error.faults:
            click.echo(fault.message, err=True)
        count = len(error.faults)
        above = "line above" if count == 1 else f"{count} lines above"
        message = f"nothing was written; correct what the {above} say{'s' if count == 1 else ''}"
        raise ConfigError.of("", message, where=str(file)) from None
    if is_printed:
        click.echo(format_properties(imported.properties), nl=False)
    else:
        _write(output, imported)
        click.echo(f"{output} is written. Look at it with sparkmirror config validate {output}.")
    _show_remarks(imported, files.directory)


def _write(output: Path, imported: ImportedMirror) -> None:
    try:
        write_properties(output, imported.properties)
    except OSError as error:
        raise PropertiesError(
            str(output), None, f"cannot be written: {error.strerror}; name another file"
        ) from None


def _show_remarks(imported: ImportedMirror, directory: str) -> None:
    """Print on standard error what was left out and which files are needed."""
    if imported.remarks:
        click.echo("Not carried over, or guessed:", err=True)
    for remark in imported.remarks:
        click.echo(f"  {remark.field}: {remark.text}", err=True)
    if imported.needed_keys:
        click.echo("These keys of Secrets must be there as files:", err=True)
    for key in imported.needed_keys:
        click.echo(f"  {directory}/{key.secret}/{key.key}", err=True)
