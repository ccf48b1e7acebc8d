"""A copy task as a process of its own: what a Spark worker runs, without Spark.

python -m tests.support.copy_task HOST PORT SECRET TASK ATTEMPT
"""

from __future__ import annotations

import os
import sys

from sparkmirror.copy.messages import Hello
from sparkmirror.copy.task import Task
from tests.support.clock import set_clock


def main() -> None:
    """Copy until drained."""
    set_clock()
    host, port, secret, task, attempt = sys.argv[1:6]
    hello = Hello(task=int(task), attempt=int(attempt), host="localhost", pid=os.getpid())
    Task.at((host, int(port)), secret.encode(), hello).run()


if __name__ == "__main__":
    main()
