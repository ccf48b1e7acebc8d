"""`sparkmirror status`: how a running worker's flows are doing, once or live."""

from __future__ import annotations

import time

import click
import rich.console
import rich.live

from sparkmirror.cli.live_view import WorkerPoller, render, summary_line
from sparkmirror.cli.worker_rest_client import DEFAULT_URL, WorkerRestClient

REFRESH_INTERVAL_S = 1.0
UNHEALTHY = 2


@click.command()
@click.option("--url", default=DEFAULT_URL, show_default=True, help="The worker's REST API.")
@click.option("--watch", is_flag=True, help="Repeat until Ctrl-C.")
def status(url: str, watch: bool) -> int:
    """Show connectors, topics, rates and lag of a running worker.

    Ends with 0 if everything runs, with 2 if something does not.
    """
    console = rich.console.Console(highlight=False)
    poller = WorkerPoller(WorkerRestClient(url))
    if not watch:
        view = poller.poll(time.monotonic())
        console.print(render(view))
        return 0 if view.is_healthy else UNHEALTHY
    try:
        _follow(console, poller)
    except KeyboardInterrupt:
        return 0
    return 0


def _follow(console: rich.console.Console, poller: WorkerPoller) -> None:
    if not console.is_terminal:
        while True:
            console.print(summary_line(poller.poll(time.monotonic())), soft_wrap=True)
            time.sleep(REFRESH_INTERVAL_S)
    with rich.live.Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(render(poller.poll(time.monotonic())), refresh=True)
            time.sleep(REFRESH_INTERVAL_S)
