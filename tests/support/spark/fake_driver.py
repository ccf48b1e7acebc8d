"""A driver process without Spark: `python -m tests.support.spark.fake_driver`.

What it does is said by the connector of its job: `well` runs and obeys, `dies` runs and dies at
once, `stillborn` dies before it runs, `refuses` fails for good, `mute` says nothing, `stubborn`
does not obey. How often one was started is counted in a file beside the log.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from sparkmirror.engine.supervisor.driver_command import DriverAction, DriverCommand
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus


def main() -> None:
    """Follow the script."""
    assignment = DriverSpec.from_line(sys.stdin.buffer.readline())
    starts = Path(assignment.log).with_name("starts")
    with starts.open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    match assignment.job.connector:
        case "stillborn":
            sys.exit(1)
        case "refuses":
            send_status(DriverStatus(phase=DriverPhase.FAILED, problem="it cannot be"))
            sys.exit(2)
        case "mute":
            time.sleep(60)
    settings = assignment.job.settings
    tasks = len(assignment.job.tasks)
    send_status(DriverStatus(phase=DriverPhase.RUNNING, slots=settings.bytes_per_s, tasks=tasks))
    if assignment.job.connector == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    handle_commands(assignment.job.connector == "stubborn")


def handle_commands(is_stubborn: bool) -> None:
    """Do as told until told to end."""
    for line in sys.stdin.buffer:
        order = DriverCommand.from_line(line)
        tasks = len(order.job.tasks) if order.job else 0
        send_status(
            DriverStatus(
                phase=DriverPhase.RUNNING,
                slots=order.bytes_per_s,
                tasks=tasks,
                problem=order.action,
            )
        )
        if order.action in (DriverAction.DRAIN, DriverAction.STOP) and not is_stubborn:
            send_status(DriverStatus(phase=DriverPhase.STOPPED))
            return
    while is_stubborn:
        time.sleep(1)


def send_status(status: DriverStatus) -> None:
    """Say how it goes."""
    sys.stdout.buffer.write(status.to_line())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
