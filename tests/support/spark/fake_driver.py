"""A driver process without Spark: `python -m tests.support.spark.fake_driver`.

The connector name of its job decides what it does: `well` runs and follows commands, `dies` runs
and dies at once, `stillborn` dies before it runs, `refuses` fails and is not retriable, `mute`
prints no status, `stubborn` does not end. It appends its pid to the file `starts` beside the log.
Its status repeats what it was given: `slots` is the rate, `web_ui` the log levels as JSON, and
`problem` the action of a command.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from sparkmirror.engine.supervisor.driver_command import DriverAction, DriverCommand
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus


def main() -> None:
    """Read the spec, then act as the connector name says."""
    spec = DriverSpec.from_line(sys.stdin.buffer.readline())
    starts = Path(spec.log).with_name("starts")
    with starts.open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    match spec.job.connector:
        case "stillborn":
            sys.exit(1)
        case "refuses":
            send_status(DriverStatus(phase=DriverPhase.FAILED, problem="the job is invalid"))
            sys.exit(2)
        case "mute":
            time.sleep(60)
    settings = spec.job.settings
    tasks = len(spec.job.tasks)
    send_status(
        DriverStatus(
            phase=DriverPhase.RUNNING,
            slots=settings.bytes_per_s,
            tasks=tasks,
            web_ui=json.dumps(spec.log_levels),
        )
    )
    if spec.job.connector == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    handle_commands(spec.job.connector == "stubborn")


def handle_commands(is_stubborn: bool) -> None:
    """Answer each command with a status, until DRAIN or STOP."""
    for line in sys.stdin.buffer:
        command = DriverCommand.from_line(line)
        tasks = len(command.job.tasks) if command.job else 0
        send_status(
            DriverStatus(
                phase=DriverPhase.RUNNING,
                slots=command.bytes_per_s,
                tasks=tasks,
                problem=command.action,
                web_ui=json.dumps(command.log_levels),
            )
        )
        if command.action in (DriverAction.DRAIN, DriverAction.STOP) and not is_stubborn:
            send_status(DriverStatus(phase=DriverPhase.STOPPED))
            return
    while is_stubborn:
        time.sleep(1)


def send_status(status: DriverStatus) -> None:
    """Print a status."""
    sys.stdout.buffer.write(status.to_line())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
