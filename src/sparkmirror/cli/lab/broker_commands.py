"""One command for each thing that can be done to brokers: `lab stop`, `lab pause` and so on."""

from __future__ import annotations

import click

from sparkmirror.cli.lab.lookup import broker_option, lab_option, lock_wait_notice, require_lab
from sparkmirror.cli.progress_line import progress_line
from sparkmirror.lab.cluster.cluster_actions import CLUSTER_ACTIONS, ClusterAction
from sparkmirror.lab.lab_store import LabStore
from sparkmirror.lab.processes.process_reaper import ProcessReaper


def broker_commands() -> list[click.Command]:
    """Make a command for each verb of the table."""
    return [_command(verb) for verb in CLUSTER_ACTIONS.values()]


def _command(verb: ClusterAction) -> click.Command:
    @click.command(verb.name, help=verb.help)
    @click.argument("cluster")
    @broker_option
    @lab_option
    def run(cluster: str, broker: int | None, lab_name: str) -> None:
        click.echo(_run_action(verb, cluster, broker, lab_name))

    return run


def _run_action(verb: ClusterAction, name: str, broker: int | None, lab_name: str) -> str:
    """Do it, and return what to say about it."""
    store = LabStore()
    guard = ProcessReaper.detached()
    with progress_line() as ticker, store.lock(lab_name, lock_wait_notice(ticker)):
        cluster = require_lab(store, lab_name, guard).cluster(name)
        what = name if broker is None else cluster.broker(broker).name
        ticker.show(f"{verb.progress_text} {what}")
        if broker is None:
            verb.run_on_cluster(cluster)
        else:
            verb.run_on_broker(cluster, broker)
        guard.release()
    return f"{what} {verb.done_text}."
