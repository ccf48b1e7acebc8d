"""`sparkmirror status`: how a running worker's flows are doing, once or live."""

from __future__ import annotations

import time

import click
import rich.console
import rich.live
import rich.text

from sparkmirror.cli.worker_live_view import (
    WorkerLiveView,
    WorkerPoller,
    notes,
    render,
    summary_line,
    tables,
)
from sparkmirror.cli.worker_rest_client import DEFAULT_URL, WorkerRestClient
from sparkmirror.errors import ConnectRestError, RequestFailed

REFRESH_INTERVAL_S = 1.0
UNHEALTHY = 2


@click.command()
@click.option("--url", default=DEFAULT_URL, show_default=True, help="The worker's REST API.")
@click.option("--watch", is_flag=True, help="Repeat until Ctrl-C.")
def status(url: str, watch: bool) -> int:
    """Show connectors, topics, rates, lag, problems and events of a running worker.

    \b
    Exit codes:
      0  the worker is healthy, every connector and task is RUNNING without a
         problem, and the lag of every partition is known
      2  something is not: it starts, it is PAUSED, STOPPED or FAILED, it has a
         problem, or a lag is unknown
      1  no worker answers
    """
    console = rich.console.Console(highlight=False)
    poller = WorkerPoller(WorkerRestClient(url))
    try:
        view = poller.poll(time.monotonic())
    except ConnectRestError as error:  # it answers, but not this
        click.echo(f"Error: {error}", err=True)
        return UNHEALTHY
    if not watch:
        _print_once(console, view)
        return 0 if view.is_healthy else UNHEALTHY
    try:
        _follow(console, poller)
    except KeyboardInterrupt:
        return 0
    return 0


def _print_once(console: rich.console.Console, view: WorkerLiveView) -> None:
    """Print a line per cause and event, however long: a script may search for it."""
    for table in tables(view):
        console.print(table)
    if not view.connectors:
        console.print("The worker shows no connectors.")
    for line in notes(view):
        console.print(line, soft_wrap=True)


def _follow(console: rich.console.Console, poller: WorkerPoller) -> None:
    if not console.is_terminal:
        while True:
            view = _try_poll(poller)
            line = view if isinstance(view, str) else summary_line(view)
            console.print(line, soft_wrap=True, markup=False)
            time.sleep(REFRESH_INTERVAL_S)
    with rich.live.Live(console=console, auto_refresh=False) as live:
        while True:
            view = _try_poll(poller)
            shown = rich.text.Text(view) if isinstance(view, str) else render(view)
            live.update(shown, refresh=True)
            time.sleep(REFRESH_INTERVAL_S)


def _try_poll(poller: WorkerPoller) -> WorkerLiveView | str:
    """Return a view, or why there is none: the worker may be restarting."""
    try:
        return poller.poll(time.monotonic())
    except RequestFailed as error:
        return str(error)
