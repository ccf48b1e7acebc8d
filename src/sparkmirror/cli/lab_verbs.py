"""One command for each thing that can be done to brokers: `lab stop`, `lab pause` and so on."""

from __future__ import annotations

import click

from sparkmirror.cli.lab_opening import broker_option, lab_option, must_open_lab, waiting
from sparkmirror.cli.progress import ticking
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.state import LabStore
from sparkmirror.lab.verbs import VERBS, Verb


def verb_commands() -> list[click.Command]:
    """Make a command for each verb of the table."""
    return [_command(verb) for verb in VERBS.values()]


def _command(verb: Verb) -> click.Command:
    @click.command(verb.name, help=verb.help)
    @click.argument("cluster")
    @broker_option
    @lab_option
    def run(cluster: str, broker: int | None, lab_name: str) -> None:
        click.echo(_do(verb, cluster, broker, lab_name))

    return run


def _do(verb: Verb, name: str, broker: int | None, lab_name: str) -> str:
    """Do it, and return what to say about it."""
    store = LabStore()
    guard = Guard.detached()
    with ticking() as ticker, store.changing(lab_name, waiting(ticker)):
        cluster = must_open_lab(store, lab_name, guard).cluster(name)
        what = name if broker is None else cluster.broker(broker).name
        ticker.say(f"{verb.doing} {what}")
        if broker is None:
            verb.to_cluster(cluster)
        else:
            verb.to_broker(cluster, broker)
        guard.release()
    return f"{what} {verb.done}."
