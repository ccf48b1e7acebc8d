"""`sparkmirror export strimzi`: writes a KafkaMirrorMaker2 from an mm2.properties."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sparkmirror.cli.strimzi.import_from_strimzi_command import DEFAULT_SECRETS
from sparkmirror.cli.strimzi.properties_to_resource.resource_export import ResourceExport
from sparkmirror.cli.strimzi.resource_to_properties.api_versions import V1, V1BETA2
from sparkmirror.cli.strimzi.yaml_documents import documents_text
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.secrets.providers import try_create_providers


@click.group("export")
def export_group() -> None:
    """Print the flows of an mm2.properties as the configuration of another program."""


@export_group.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--name", default="my-mirror-maker-2", show_default=True, help="Name of the resource."
)
@click.option(
    "--api-version",
    type=click.Choice([V1, V1BETA2]),
    default=V1,
    show_default=True,
    help="Strimzi has v1 since 0.49, and v1beta2 up to 0.51.",
)
@click.option(
    "--secrets",
    default=DEFAULT_SECRETS,
    show_default=True,
    metavar="DIR",
    help="Where FILE has the files of Secrets: a directory for each.",
)
def strimzi(file: Path, name: str, api_version: str, secrets: str) -> None:
    """Print the enabled flows of FILE as KafkaMirrorMaker2 resources, one for each target.

    The YAML has no secret. Standard error lists the Secrets to create and what is left out.
    """
    properties = load_properties(file)
    providers, _ = try_create_providers(properties.mapping, os.environ)
    config = MirrorMakerConfig(properties, providers.lenient())
    export = ResourceExport(
        config, name=name, version=api_version, secrets_directory=secrets.rstrip("/")
    )
    click.echo(documents_text(export.resources()), nl=False)
    if export.remarks:
        click.echo("To create, or not carried over:", err=True)
    for remark in export.remarks:
        click.echo(f"  {remark.field}: {remark.text}", err=True)
