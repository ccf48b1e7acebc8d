"""`lab exec` and `lab jars`: Kafka's own tools, and the jars they come in."""

from __future__ import annotations

import os

import click

from sparkmirror.cli.lab_opening import lab_option, must_open_lab, of_lab, open_lab
from sparkmirror.cli.progress import ticking
from sparkmirror.errors import Conflict
from sparkmirror.lab.detached import connection
from sparkmirror.lab.jars import DEFAULT_VERSION, Jars
from sparkmirror.lab.jvm import Jvm
from sparkmirror.lab.state import LabStore
from sparkmirror.lab.status import cluster_status
from sparkmirror.lab.toolbox import fill_connection, find_tool, needs_servers
from sparkmirror.lab.tools import Tools

_MEGABYTE = 1024 * 1024


@click.command(
    "exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--cluster", metavar="NAME", help="Which cluster; the first if not said.")
@lab_option
@click.argument("tool")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def exec_(cluster: str | None, lab_name: str, tool: str, arguments: tuple[str, ...]) -> None:
    """Run one of Kafka's tools, told where the cluster is.

    For example: sparkmirror lab exec kafka-topics --list
    """
    known = find_tool(tool)
    jvm = Jvm.from_environment(os.environ)
    if not needs_servers(known, arguments):
        Tools(_version(lab_name, cluster), jvm=jvm).become(known.name, arguments)
    chosen = must_open_lab(LabStore(), lab_name).cluster(cluster)
    if cluster_status(chosen).is_down:
        how = f"sparkmirror lab start {chosen.name}{of_lab(lab_name)}"
        raise Conflict(f"{chosen.name} is down: start it with {how}.")
    version = chosen.spec.version
    filled = fill_connection(known, arguments, connection(chosen), version)
    Tools(version, jvm=jvm).become(known.name, filled)


@click.command()
@click.option("--version", default=DEFAULT_VERSION, show_default=True)
def jars(version: str) -> None:
    """Fetch Kafka's jars if they are missing, and check every byte."""
    cache = Jars()
    with ticking() as ticker:
        directory = cache.verify(version, ticker.fetch)
    manifest = cache.manifest(version)
    size = manifest.size_bytes / _MEGABYTE if manifest else 0
    count = len(manifest.entries) if manifest else 0
    click.echo(f"Kafka {version}: {count} jars, {size:.1f} MB, complete in {directory}")
    click.echo(f"Versions in the cache: {', '.join(cache.versions())}")


def _version(lab_name: str, cluster: str | None) -> str:
    """Choose the version of a tool that needs no cluster: the lab's, if there is one."""
    found = open_lab(LabStore(), lab_name)
    return DEFAULT_VERSION if found is None else found.cluster(cluster).spec.version
