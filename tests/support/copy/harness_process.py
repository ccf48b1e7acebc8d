"""A copy harness in a process of its own, so that a test can kill the driver.

`python -m tests.support.copy.harness_process` reads a job as JSON, then prints the number of copied
records repeatedly.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
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
        )
        assert self._process.stdin
        self._process.stdin.write(json.dumps(job.to_json()))
        self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait_until_copied(self, records: int, timeout_s: float = HARNESS_TIMEOUT_S) -> None:
        """Wait until `records` records are copied."""
        assert self._process.stdout
        copied = 0
        timer = threading.Timer(timeout_s, self._process.kill)
        timer.start()
        try:
            for line in self._process.stdout:
                copied = int(line)
                if copied >= records:
                    return
        finally:
            timer.cancel()
        raise AssertionError(f"only {copied} of {records} records were copied before it ended")

    def kill(self) -> None:
        """Kill the driver. Its tasks lose their control connection and end."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def main() -> None:
    """Run a harness until killed."""
    apply_clock_skew()
    job = CopyJob.from_json(json.load(sys.stdin))
    with CopyHarness(job, OffsetsTopicLedger.for_job(job)) as harness:
        while True:
            sys.stdout.write(f"{harness.snapshot.records}\n")
            sys.stdout.flush()
            time.sleep(0.02)


if __name__ == "__main__":
    main()
