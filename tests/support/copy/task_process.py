"""A copy task as a process of its own, without Spark.

python -m tests.support.copy.task_process HOST PORT PROTOCOL SECRET TASK ATTEMPT
"""

from __future__ import annotations

import os
import sys

from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.task.task import CopyTask
from tests.support.copy.clock_skew import apply_clock_skew


def main() -> None:
    """Copy until drained."""
    apply_clock_skew()
    host, port, protocol, secret, task, attempt = sys.argv[1:7]
    hello = Hello(task=int(task), attempt=int(attempt), host="localhost", pid=os.getpid())
    address = host, int(port)
    CopyTask.connect(address, ControlProtocol(protocol), secret.encode(), hello).run()


if __name__ == "__main__":
    main()
