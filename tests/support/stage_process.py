"""A stage in a process of its own, so that a test can kill the driver with everything it knows.

python -m tests.support.stage_process    reads a job as JSON, then prints the records copied so far
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import Self

from sparkmirror.copy.job import Job
from sparkmirror.engine.ledger import OffsetsTopicLedger
from tests.support.clock import set_clock, with_clock
from tests.support.stage import PATIENCE_S, ROOT, Stage


class StageProcess:
    """The parent's end: `with StageProcess(job) as stage:`; it is killed in the end."""

    def __init__(self, job: Job, *, clock_ahead_ms: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.stage_process"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=with_clock(clock_ahead_ms),
        )
        assert self._process.stdin
        self._process.stdin.write(json.dumps(job.to_json()))
        self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait_until_copied(self, records: int, timeout_s: float = PATIENCE_S) -> None:
        """Wait until so many records were reported as copied."""
        assert self._process.stdout
        copied = 0
        patience = threading.Timer(timeout_s, self._process.kill)
        patience.start()
        try:
            for line in self._process.stdout:
                copied = int(line)
                if copied >= records:
                    return
        finally:
            patience.cancel()
        raise AssertionError(f"only {copied} of {records} records were copied before it ended")

    def kill(self) -> None:
        """Kill the driver. Its tasks notice that it is gone, and end."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def main() -> None:
    """Run a stage until killed."""
    set_clock()
    job = Job.from_json(json.load(sys.stdin))
    with Stage(job, OffsetsTopicLedger.of(job)) as stage:
        while True:
            sys.stdout.write(f"{stage.snapshot.records}\n")
            sys.stdout.flush()
            time.sleep(0.02)


if __name__ == "__main__":
    main()
