"""`lab up`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import click
import rich.console

from sparkmirror.cli.lab.lookup import lab_option, lock_wait_notice, open_lab
from sparkmirror.cli.lab.options import (
    LabUpOptions,
    cluster_specs,
    option_callback,
    parse_names,
    parse_property,
    parse_topic,
    parse_user,
    repeated_option_callback,
)
from sparkmirror.cli.lab.text_output import show_clients, show_next_steps, show_status
from sparkmirror.cli.progress_line import ProgressLine, progress_line
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.detached_lab import DetachedLab
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, TESTED_VERSIONS, JarCache
from sparkmirror.lab.lab_store import LabStore


@click.command()
@click.option(
    "--clusters",
    callback=option_callback(parse_names),
    default="primary,backup",
    show_default=True,
    metavar="NAMES",
    help="Names, separated by commas.",
)
@click.option("--brokers", type=int, default=1, show_default=True, help="Brokers in each cluster.")
@click.option(
    "--version",
    metavar="VERSION",
    default=DEFAULT_VERSION,
    show_default=True,
    help=f"Kafka's version; tested: {', '.join(TESTED_VERSIONS)}.",
)
@click.option(
    "--listener",
    "listeners",
    type=click.Choice([listener.value for listener in ListenerProtocol], case_sensitive=False),
    multiple=True,
    default=[ListenerProtocol.PLAINTEXT.value],
    show_default=True,
    metavar="PROTOCOL",
    help=f"Listener protocol: {', '.join(ListenerProtocol)}; repeatable.",
)
@click.option("--authorizer", is_flag=True, help="Check ACLs; the user admin may do everything.")
@click.option(
    "--topic",
    "topics",
    callback=repeated_option_callback(parse_topic),
    multiple=True,
    metavar="[CLUSTER/]TOPIC[:PARTITIONS]",
    help="Create a topic, in the first cluster if none is named; repeatable.",
)
@click.option(
    "--property",
    "properties",
    callback=repeated_option_callback(parse_property),
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of every broker; repeatable.",
)
@click.option(
    "--user",
    "users",
    callback=repeated_option_callback(parse_user),
    multiple=True,
    metavar="NAME:PASSWORD",
    help="A user besides admin; repeatable.",
)
@click.option("--full-speed", is_flag=True, help="Brokers for benchmarks; they start more slowly.")
@lab_option
def up(lab_name: str, **options: Unpack[LabUpOptions]) -> None:
    """Start clusters that run until `lab down`."""
    store = LabStore()
    specs = cluster_specs(options)
    with progress_line() as progress, store.lock(lab_name, lock_wait_notice(progress)):
        running_lab = open_lab(store, lab_name)
        notice = "" if running_lab is None else _restart_brokers(running_lab, progress)
        running = running_lab or _start_lab(store, lab_name, specs, progress)
    console = rich.console.Console(highlight=False, soft_wrap=True)
    if notice:
        console.print(notice)
    show_status(console, running.status())
    show_clients(console, list(running.clusters.values()))
    if not notice:
        show_next_steps(console, lab_name, specs)


def _start_lab(
    store: LabStore, name: str, specs: Sequence[ClusterSpec], progress: ProgressLine
) -> DetachedLab:
    JarCache().ensure(specs[0].version, progress.on_download)
    return DetachedLab.start(store, name, specs, progress.show)


def _restart_brokers(running_lab: DetachedLab, progress: ProgressLine) -> str:
    """Start the brokers if all are down; return the line to print."""
    if not all(cluster.is_down for cluster in running_lab.status()):
        return (
            f"Lab {running_lab.name!r} is up already; to start another, stop it first or choose"
            " another name with --lab."
        )
    progress.show("All brokers are down: starting them again")
    running_lab.start_brokers()
    return f"All brokers of lab {running_lab.name!r} were down; they run again with their old data."
