"""A copy harness in a process of its own, so that a test can kill or suspend the driver.

The process sends repeatedly how many records are copied and how many partitions are leased. A
message to it ends the membership of the worker in its group.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Self

from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from tests.support.copy.clock_skew import CLOCK_SKEW_VARIABLE, apply_clock_skew
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S, CopyHarness
from tests.support.copy.forked_process import ForkedProcess


class HarnessProcess:
    """Starts the process: `with HarnessProcess(job) as harness:`. Kills it at the end."""

    def __init__(self, job: CopyJob, *, clock_ahead_ms: int = 0) -> None:
        self._connection, other_end = Pipe()
        self._process = ForkedProcess(run_harness, other_end, job.to_json(), clock_ahead_ms)
        other_end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait_until_copied(self, records: int, timeout_s: float = HARNESS_TIMEOUT_S) -> None:
        """Wait until `records` records are copied."""
        self._wait_for(
            f"{records} copied records", lambda seen: seen["copied"] >= records, timeout_s
        )

    def wait_until_leased(self, partitions: int, timeout_s: float = HARNESS_TIMEOUT_S) -> None:
        """Wait until exactly `partitions` partitions are leased."""
        self._wait_for(f"{partitions} leases", lambda seen: seen["leased"] == partitions, timeout_s)

    def suspend_as_lost_member(self, timeout_s: float = HARNESS_TIMEOUT_S) -> None:
        """End the membership of the worker, and suspend the driver and its tasks."""
        self._connection.send("lost")
        self._wait_for("the end of the membership", lambda seen: not seen["member"], timeout_s)
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the driver and its tasks."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the driver. Its tasks lose their control connection and end."""
        self._process.kill()
        with suppress(ProcessLookupError):
            self.resume()  # a suspended task would not notice the end of its driver
        self._process.wait()
        self._connection.close()

    def _wait_for(
        self, what: str, condition: Callable[[dict[str, int]], bool], timeout_s: float
    ) -> None:
        seen: dict[str, int] = {}
        deadline = time.monotonic() + timeout_s
        try:
            while self._connection.poll(max(0.0, deadline - time.monotonic())):
                seen = self._connection.recv()
                if condition(seen):
                    return
        except EOFError:
            raise AssertionError(f"the driver ended before {what}; it sent {seen}") from None
        raise AssertionError(f"waited {timeout_s:.0f} s in vain: {what}; the driver sent {seen}")


def run_harness(connection: Connection, job: dict[str, Any], clock_ahead_ms: int) -> None:
    """Run a harness until killed. The process leads a session: signals reach its tasks, too."""
    os.setsid()
    os.environ[CLOCK_SKEW_VARIABLE] = str(clock_ahead_ms)
    apply_clock_skew()
    made = CopyJob.from_json(job)
    with CopyHarness(made, OffsetsTopicLedger.for_job(made)) as harness:
        threading.Thread(target=_follow_membership, args=(harness, connection), daemon=True).start()
        while True:
            member, snapshot = harness.is_member, harness.snapshot
            leased = sum(view.state == "leased" for view in snapshot.partitions.values())
            connection.send({"copied": snapshot.records, "leased": leased, "member": int(member)})
            time.sleep(0.02)


def _follow_membership(harness: CopyHarness, connection: Connection) -> None:
    """End the membership when the test says so."""
    connection.recv()
    harness.lose_membership()
