"""`sparkmirror lab`: real Kafka clusters on this computer, from the command line.

The group; its commands live in the modules beside it, each a skin over the lab's own room.
"""

from __future__ import annotations

import click

from sparkmirror.cli.lab.broker_commands import broker_commands
from sparkmirror.cli.lab.tool_commands import exec_, jars
from sparkmirror.cli.lab.up import down, up
from sparkmirror.cli.lab.view_commands import logs, status


@click.group()
def lab() -> None:
    """Run real Kafka clusters on this computer."""


for _command in (up, status, logs, exec_, *broker_commands(), down, jars):
    lab.add_command(_command)
