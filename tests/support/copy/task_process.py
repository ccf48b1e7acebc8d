"""A copy task as a process of its own, without Spark."""

from __future__ import annotations

import os

from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.task.task import CopyTask
from tests.support.copy.clock_skew import apply_clock_skew


def run_task(
    address: tuple[str, int], protocol: ControlProtocol, secret: bytes, task: int, attempt: int
) -> None:
    """Copy until drained."""
    apply_clock_skew()
    hello = Hello(task=task, attempt=attempt, host="localhost", pid=os.getpid())
    CopyTask.connect(address, protocol, secret, hello).run()
