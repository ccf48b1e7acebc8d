"""`sparkmirror lab`: the command group. Its commands are in the modules beside this one."""

from __future__ import annotations

import click

from sparkmirror.cli.lab.down import down
from sparkmirror.cli.lab.running_cluster_commands import (
    address,
    broker_commands,
    exec_,
    jars,
    logs,
    status,
)
from sparkmirror.cli.lab.up import up


@click.group()
def lab() -> None:
    """Run real Kafka clusters on this computer."""


for _command in (up, status, address, logs, exec_, *broker_commands(), down, jars):
    lab.add_command(_command)
