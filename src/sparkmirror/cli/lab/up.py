"""`lab up` and `lab down`."""

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
from sparkmirror.cli.lab.tables import show_clients, show_next_steps, show_status
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
    help="Their names, with commas between.",
)
@click.option("--brokers", type=int, default=1, show_default=True, help="Brokers in each cluster.")
@click.option(
    "--version",
    metavar="VERSION",
    default=DEFAULT_VERSION,
    show_default=True,
    help=f"Kafka's version; tried: {', '.join(TESTED_VERSIONS)}.",
)
@click.option(
    "--listener",
    "listeners",
    type=click.Choice([listener.value for listener in ListenerProtocol], case_sensitive=False),
    multiple=True,
    default=[ListenerProtocol.PLAINTEXT.value],
    show_default=True,
    metavar="PROTOCOL",
    help=f"How clients get in: {', '.join(ListenerProtocol)}; repeatable.",
)
@click.option("--authorizer", is_flag=True, help="Check ACLs; the user admin may do everything.")
@click.option(
    "--topic",
    "topics",
    callback=repeated_option_callback(parse_topic),
    multiple=True,
    metavar="[CLUSTER/]TOPIC[:PARTITIONS]",
    help="Begin with a topic, in the first cluster if none is named; repeatable.",
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
def up(lab_name: str, **said: Unpack[LabUpOptions]) -> None:
    """Start clusters that live on until `lab down`."""
    store = LabStore()
    specs = cluster_specs(said)
    with progress_line() as ticker, store.lock(lab_name, lock_wait_notice(ticker)):
        found = open_lab(store, lab_name)
        news = "" if found is None else _restart_brokers(found, ticker)
        running = found or _start_lab(store, lab_name, specs, ticker)
    console = rich.console.Console(highlight=False, soft_wrap=True)
    if news:
        console.print(news)
    show_status(console, running.status())
    show_clients(console, list(running.clusters.values()))
    if not news:
        show_next_steps(console, lab_name, specs)


@click.command()
@lab_option
def down(lab_name: str) -> None:
    """Stop all clusters of a lab and remove their data."""
    store = LabStore()
    with progress_line() as ticker, store.lock(lab_name, lock_wait_notice(ticker)):
        found = open_lab(store, lab_name)
        if found is not None:
            ticker.show("Taking the lab down")
            found.down()
    if found is None:
        click.echo(f"No lab {lab_name!r} is up.")
    else:
        click.echo(f"Lab {lab_name!r} is down: {', '.join(found.clusters)}.")


def _start_lab(
    store: LabStore, name: str, specs: Sequence[ClusterSpec], ticker: ProgressLine
) -> DetachedLab:
    JarCache().ensure(specs[0].version, ticker.on_download)
    return DetachedLab.start(store, name, specs, ticker.show)


def _restart_brokers(found: DetachedLab, ticker: ProgressLine) -> str:
    """Start a lab again whose brokers are all down; return what to say about it."""
    if not all(cluster.is_down for cluster in found.status()):
        return (
            f"Lab {found.name!r} is up already; to start another, take it down first or choose"
            " another name with --lab."
        )
    ticker.show("All brokers are down: starting them again")
    found.start_brokers()
    return f"All brokers of lab {found.name!r} were down; they run again, with the data they had."
