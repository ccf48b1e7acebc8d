"""`lab exec` and `lab jars`: Kafka's own tools, and the jars they come in."""

from __future__ import annotations

import os

import click

from sparkmirror.cli.lab.lookup import lab_flag, lab_option, open_lab, require_lab
from sparkmirror.cli.progress_line import progress_line
from sparkmirror.errors import Conflict
from sparkmirror.lab.cluster.cluster_status import cluster_status
from sparkmirror.lab.detached_lab import tool_connection
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.kafka.kafka_tools import (
    add_connection_arguments,
    find_tool,
    needs_bootstrap_servers,
)
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.lab.lab_store import LabStore

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
    jvm = JvmOptions.from_environment(os.environ)
    if not needs_bootstrap_servers(known, arguments):
        KafkaToolRunner(_tool_version(lab_name, cluster), jvm=jvm).exec_tool(known.name, arguments)
    chosen = require_lab(LabStore(), lab_name).cluster(cluster)
    if cluster_status(chosen).is_down:
        how = f"sparkmirror lab start {chosen.name}{lab_flag(lab_name)}"
        raise Conflict(f"{chosen.name} is down: start it with {how}.")
    version = chosen.spec.version
    filled = add_connection_arguments(known, arguments, tool_connection(chosen), version)
    KafkaToolRunner(version, jvm=jvm).exec_tool(known.name, filled)


@click.command()
@click.option("--version", default=DEFAULT_VERSION, show_default=True)
def jars(version: str) -> None:
    """Fetch Kafka's jars if they are missing, and check every byte."""
    cache = JarCache()
    with progress_line() as ticker:
        directory = cache.verify(version, ticker.on_download)
    manifest = cache.manifest(version)
    size = manifest.size_bytes / _MEGABYTE if manifest else 0
    count = len(manifest.entries) if manifest else 0
    click.echo(f"Kafka {version}: {count} jars, {size:.1f} MB, complete in {directory}")
    click.echo(f"Versions in the cache: {', '.join(cache.versions())}")


def _tool_version(lab_name: str, cluster: str | None) -> str:
    """Choose the version of a tool that needs no cluster: the lab's, if there is one."""
    found = open_lab(LabStore(), lab_name)
    return DEFAULT_VERSION if found is None else found.cluster(cluster).spec.version
