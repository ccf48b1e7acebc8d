"""`lab up` and `lab down`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import click
import rich.console

from sparkmirror.cli.lab_opening import lab_option, open_lab, waiting
from sparkmirror.cli.lab_options import (
    Said,
    each,
    one,
    read_names,
    read_property,
    read_topic,
    read_user,
    specifications,
)
from sparkmirror.cli.lab_tables import show_clients, show_next_steps, show_status
from sparkmirror.cli.progress import Ticker, ticking
from sparkmirror.lab.detached import DetachedLab
from sparkmirror.lab.jars import DEFAULT_VERSION, TRIED_VERSIONS, Jars
from sparkmirror.lab.spec import ClusterSpec, Listener
from sparkmirror.lab.state import LabStore


@click.command()
@click.option(
    "--clusters",
    callback=one(read_names),
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
    help=f"Kafka's version; tried: {', '.join(TRIED_VERSIONS)}.",
)
@click.option(
    "--listener",
    "listeners",
    type=click.Choice([listener.value for listener in Listener], case_sensitive=False),
    multiple=True,
    default=[Listener.PLAINTEXT.value],
    show_default=True,
    metavar="PROTOCOL",
    help=f"How clients get in: {', '.join(Listener)}; repeatable.",
)
@click.option("--authorizer", is_flag=True, help="Check ACLs; the user admin may do everything.")
@click.option(
    "--topic",
    "topics",
    callback=each(read_topic),
    multiple=True,
    metavar="[CLUSTER/]TOPIC[:PARTITIONS]",
    help="Begin with a topic, in the first cluster if none is named; repeatable.",
)
@click.option(
    "--property",
    "properties",
    callback=each(read_property),
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of every broker; repeatable.",
)
@click.option(
    "--user",
    "users",
    callback=each(read_user),
    multiple=True,
    metavar="NAME:PASSWORD",
    help="A user besides admin; repeatable.",
)
@click.option("--full-speed", is_flag=True, help="Brokers for benchmarks; they start more slowly.")
@lab_option
def up(lab_name: str, **said: Unpack[Said]) -> None:
    """Start clusters that live on until `lab down`."""
    store = LabStore()
    specs = specifications(said)
    with ticking() as ticker, store.changing(lab_name, waiting(ticker)):
        found = open_lab(store, lab_name)
        news = "" if found is None else _bring_back(found, ticker)
        running = found or _start(store, lab_name, specs, ticker)
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
    with ticking() as ticker, store.changing(lab_name, waiting(ticker)):
        found = open_lab(store, lab_name)
        if found is not None:
            ticker.say("Taking the lab down")
            found.down()
    if found is None:
        click.echo(f"No lab {lab_name!r} is up.")
    else:
        click.echo(f"Lab {lab_name!r} is down: {', '.join(found.clusters)}.")


def _start(store: LabStore, name: str, specs: Sequence[ClusterSpec], ticker: Ticker) -> DetachedLab:
    Jars().ensure(specs[0].version, ticker.fetch)
    return DetachedLab.start(store, name, specs, ticker.say)


def _bring_back(found: DetachedLab, ticker: Ticker) -> str:
    """Start a lab again whose brokers are all down; return what to say about it."""
    if not all(cluster.is_down for cluster in found.status()):
        return (
            f"Lab {found.name!r} is up already; to start another, take it down first or choose"
            " another name with --lab."
        )
    ticker.say("All brokers are down: starting them again")
    found.start_brokers()
    return f"All brokers of lab {found.name!r} were down; they run again, with the data they had."
