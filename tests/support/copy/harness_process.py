"""A copy harness in a process of its own, so that a test can kill or suspend the driver.

`python -m tests.support.copy.harness_process` reads a job as JSON, then prints repeatedly how many
records are copied and how many partitions are leased. Another line of input ends the membership of
the worker in its group.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from tests.support.copy.clock_skew import apply_clock_skew, skewed_environment
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S, ROOT, CopyHarness


class HarnessProcess:
    """Starts the process: `with HarnessProcess(job) as harness:`. Kills it at the end."""

    def __init__(self, job: CopyJob, *, clock_ahead_ms: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.copy.harness_process"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=skewed_environment(clock_ahead_ms),
            start_new_session=True,
        )
        self._send(json.dumps(job.to_json()))

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
        self._send("lost")
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
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()

    def _send(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _wait_for(
        self, what: str, condition: Callable[[dict[str, int]], bool], timeout_s: float
    ) -> None:
        assert self._process.stdout
        seen: dict[str, int] = {}
        timer = threading.Timer(timeout_s, self._process.kill)
        timer.start()
        try:
            for line in self._process.stdout:
                seen = json.loads(line)
                if condition(seen):
                    return
        finally:
            timer.cancel()
        raise AssertionError(f"the driver ended before {what}; it printed {seen}")


def main() -> None:
    """Run a harness until killed."""
    apply_clock_skew()
    job = CopyJob.from_json(json.loads(sys.stdin.readline()))
    with CopyHarness(job, OffsetsTopicLedger.for_job(job)) as harness:
        threading.Thread(target=_follow_membership, args=(harness,), daemon=True).start()
        while True:
            member, snapshot = harness.is_member, harness.snapshot
            leased = sum(view.state == "leased" for view in snapshot.partitions.values())
            seen = {"copied": snapshot.records, "leased": leased, "member": int(member)}
            sys.stdout.write(f"{json.dumps(seen)}\n")
            sys.stdout.flush()
            time.sleep(0.02)


def _follow_membership(harness: CopyHarness) -> None:
    """End the membership when the test says so."""
    for _ in sys.stdin:
        harness.lose_membership()


if __name__ == "__main__":
    main()
