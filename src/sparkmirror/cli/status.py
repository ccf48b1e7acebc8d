"""`sparkmirror status`: how a running worker's flows are doing, once or live."""

from __future__ import annotations

import time

import click
import rich.console
import rich.live

from sparkmirror.cli.flow_view import Watcher, line, rendered
from sparkmirror.cli.mirror_api import DEFAULT_URL, MirrorApi

LOOK_EVERY_S = 1.0
NOT_WELL = 2


@click.command()
@click.option("--url", default=DEFAULT_URL, show_default=True, help="The worker's REST API.")
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C.")
def status(url: str, watch: bool) -> int:
    """Show connectors, topics, rates and lag of a running worker.

    Ends with 0 if everything runs, with 2 if something does not.
    """
    console = rich.console.Console(highlight=False)
    watcher = Watcher(MirrorApi(url))
    if not watch:
        view = watcher.look(time.monotonic())
        console.print(rendered(view))
        return 0 if view.is_well else NOT_WELL
    try:
        _follow(console, watcher)
    except KeyboardInterrupt:
        return 0
    return 0


def _follow(console: rich.console.Console, watcher: Watcher) -> None:
    if not console.is_terminal:
        while True:
            console.print(line(watcher.look(time.monotonic())), soft_wrap=True)
            time.sleep(LOOK_EVERY_S)
    with rich.live.Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(rendered(watcher.look(time.monotonic())), refresh=True)
            time.sleep(LOOK_EVERY_S)
