"""A driver process without Spark: `python -m tests.support.fake_driver`.

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

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.order import Do, Order
from sparkmirror.engine.status import Phase, Status


def main() -> None:
    """Follow the script."""
    assignment = Assignment.from_line(sys.stdin.buffer.readline())
    starts = Path(assignment.log).with_name("starts")
    with starts.open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    match assignment.job.connector:
        case "stillborn":
            sys.exit(1)
        case "refuses":
            tell(Status(phase=Phase.FAILED, trouble="it cannot be"))
            sys.exit(2)
        case "mute":
            time.sleep(60)
    settings = assignment.job.settings
    tasks = len(assignment.job.tasks)
    tell(Status(phase=Phase.RUNNING, slots=settings.bytes_per_s, tasks=tasks))
    if assignment.job.connector == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    obey(assignment.job.connector == "stubborn")


def obey(is_stubborn: bool) -> None:
    """Do as told until told to end."""
    for line in sys.stdin.buffer:
        order = Order.from_line(line)
        tasks = len(order.job.tasks) if order.job else 0
        tell(Status(phase=Phase.RUNNING, slots=order.bytes_per_s, tasks=tasks, trouble=order.do))
        if order.do in (Do.DRAIN, Do.STOP) and not is_stubborn:
            tell(Status(phase=Phase.STOPPED))
            return
    while is_stubborn:
        time.sleep(1)


def tell(status: Status) -> None:
    """Say how it goes."""
    sys.stdout.buffer.write(status.to_line())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
