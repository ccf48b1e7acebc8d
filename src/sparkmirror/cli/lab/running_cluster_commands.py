"""The `lab` commands on running clusters: status, address, logs, exec, jars, broker actions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict

import click
import rich.console

from sparkmirror.cli.lab.lookup import (
    broker_option,
    lab_flag,
    lab_option,
    lock_wait_notice,
    open_lab,
    require_lab,
    start_hint,
)
from sparkmirror.cli.lab.text_output import show_status
from sparkmirror.cli.progress_line import progress_line
from sparkmirror.errors import Conflict, NotFound
from sparkmirror.lab.cluster.cluster_actions import CLUSTER_ACTIONS, ClusterAction
from sparkmirror.lab.cluster.cluster_status import cluster_status
from sparkmirror.lab.detached_lab import tool_connection
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.kafka.kafka_tool_table import (
    add_connection_arguments,
    find_tool,
    needs_bootstrap_servers,
)
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.lab.lab_store import LabStore
from sparkmirror.lab.processes.log_tail import LogTail
from sparkmirror.lab.processes.process_reaper import ProcessReaper

_FOLLOW_INTERVAL_S = 0.2
_MEGABYTE = 1024 * 1024


@click.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@lab_option
def status(lab_name: str, form: str) -> None:
    """Show the clusters and the state of their brokers."""
    store = LabStore()
    found = open_lab(store, lab_name)
    clusters = found.status() if found is not None else []
    if form == "json":
        plain = {"lab": lab_name, "clusters": [asdict(cluster) for cluster in clusters]}
        click.echo(json.dumps(plain, indent=2))
    elif found is None:
        click.echo(f"No lab {lab_name!r} is up; {start_hint(lab_name)}")
        if others := ", ".join(store.names()):
            click.echo(f"Other labs: {others} (see them with --lab NAME)")
    else:
        show_status(rich.console.Console(highlight=False, soft_wrap=True), clusters)


@click.command()
@click.argument("cluster")
@click.option("--listener", metavar="PROTOCOL", help="Which listener, if not the first.")
@lab_option
def address(cluster: str, listener: str | None, lab_name: str) -> None:
    """Print the bootstrap servers of a cluster, and nothing else: for scripts."""
    listeners = cluster_status(require_lab(LabStore(), lab_name).cluster(cluster)).listeners
    chosen = next(iter(listeners)) if listener is None else listener.upper()
    if chosen not in listeners:
        known = ", ".join(listeners)
        raise NotFound(f"{cluster} has no listener {chosen}: choose one of {known}.")
    click.echo(listeners[chosen])


@click.command()
@click.argument("cluster")
@broker_option
@click.option("--lines", type=click.IntRange(min=0), default=50, show_default=True)
@click.option("--follow", "-f", is_flag=True, help="Keep printing new lines.")
@lab_option
def logs(cluster: str, broker: int | None, lines: int, follow: bool, lab_name: str) -> None:
    """Show the logs of a cluster's brokers."""
    running = require_lab(LabStore(), lab_name).cluster(cluster)
    brokers = running.brokers.values() if broker is None else [running.broker(broker)]
    tails = {
        f"{one_broker.name} | " if len(brokers) > 1 else "": LogTail(one_broker.log_file)
        for one_broker in brokers
    }
    for prefix, tail in tails.items():
        _echo_lines(prefix, tail.last_lines(lines))
    while follow:
        time.sleep(_FOLLOW_INTERVAL_S)
        for prefix, tail in tails.items():
            _echo_lines(prefix, tail.new_lines())


def _echo_lines(prefix: str, lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(f"{prefix}{line}")


@click.command(
    "exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--cluster", metavar="NAME", help="Cluster.  [default: the first]")
@lab_option
@click.argument("tool")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def exec_(cluster: str | None, lab_name: str, tool: str, arguments: tuple[str, ...]) -> None:
    """Run one of Kafka's tools with the cluster's address.

    For example: sparkmirror lab exec kafka-topics --list
    """
    known = find_tool(tool)
    jvm = JvmOptions.from_environment(os.environ)
    if not needs_bootstrap_servers(known, arguments):
        KafkaToolRunner(_tool_version(lab_name, cluster), jvm=jvm).exec_tool(known.name, arguments)
    chosen = require_lab(LabStore(), lab_name).cluster(cluster)
    if cluster_status(chosen).is_down:
        command = f"sparkmirror lab start {chosen.name}{lab_flag(lab_name)}"
        raise Conflict(f"{chosen.name} is down: start it with {command}.")
    version = chosen.spec.version
    with_connection = add_connection_arguments(known, arguments, tool_connection(chosen), version)
    KafkaToolRunner(version, jvm=jvm).exec_tool(known.name, with_connection)


@click.command()
@click.option("--version", default=DEFAULT_VERSION, show_default=True)
def jars(version: str) -> None:
    """Fetch Kafka's jars if they are missing, and verify their checksums."""
    cache = JarCache()
    with progress_line() as progress:
        directory = cache.verify(version, progress.on_download)
    manifest = cache.manifest(version)
    size = manifest.size_bytes / _MEGABYTE if manifest else 0
    count = len(manifest.entries) if manifest else 0
    click.echo(f"Kafka {version}: {count} jars, {size:.1f} MB, complete in {directory}")
    click.echo(f"Versions in the cache: {', '.join(cache.versions())}")


def _tool_version(lab_name: str, cluster: str | None) -> str:
    """Return the Kafka version of a tool that needs no cluster: the lab's, if a lab is up."""
    running = open_lab(LabStore(), lab_name)
    return DEFAULT_VERSION if running is None else running.cluster(cluster).spec.version


def broker_commands() -> list[click.Command]:
    """Create one command per broker action."""
    return [_command(action) for action in CLUSTER_ACTIONS.values()]


def _command(action: ClusterAction) -> click.Command:
    @click.command(action.name, help=action.help)
    @click.argument("cluster")
    @broker_option
    @lab_option
    def run(cluster: str, broker: int | None, lab_name: str) -> None:
        click.echo(_run_action(action, cluster, broker, lab_name))

    return run


def _run_action(action: ClusterAction, name: str, broker: int | None, lab_name: str) -> str:
    """Run the action; return the line to print."""
    store = LabStore()
    reaper = ProcessReaper.detached()
    with progress_line() as progress, store.lock(lab_name, lock_wait_notice(progress)):
        cluster = require_lab(store, lab_name, reaper).cluster(name)
        subject = name if broker is None else cluster.broker(broker).name
        progress.show(f"{action.progress_text} {subject}")
        if broker is None:
            action.run_on_cluster(cluster)
        else:
            action.run_on_broker(cluster, broker)
        reaper.release()
    return f"{subject} {action.done_text}."
