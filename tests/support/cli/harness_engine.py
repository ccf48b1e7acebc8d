"""An engine for `copy` without Spark: the copy harness."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from sparkmirror.cli.copy.engine import LaunchOptions
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.settings import CopySettings
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from tests.support.copy.copy_flow import FAST_REPORT_SETTINGS, TASK_TIMEOUT_S
from tests.support.copy.copy_harness import CopyHarness

STATUS_INTERVAL_S = 0.2


class HarnessEngine:
    """Runs a job with tasks as processes."""

    def __init__(self, job: CopyJob, where: LaunchOptions) -> None:
        del where
        settings = CopySettings.from_json(job.settings.to_json() | FAST_REPORT_SETTINGS)
        quick = replace(job, settings=settings, task_timeout_s=TASK_TIMEOUT_S)
        self._harness = CopyHarness(quick, OffsetsTopicLedger.for_job(quick))
        self._is_draining = False
        self._is_open = False

    def start(self) -> None:
        self._harness.__enter__()
        self._is_open = True

    def statuses(self) -> Iterator[DriverStatus]:
        while not self._harness.conductor.is_drained():
            phase = DriverPhase.DRAINING if self._is_draining else DriverPhase.RUNNING
            yield DriverStatus(phase=phase, snapshot=self._harness.snapshot)
            time.sleep(STATUS_INTERVAL_S)
        yield DriverStatus(phase=DriverPhase.STOPPED, snapshot=self._harness.snapshot)

    def drain(self) -> None:
        self._is_draining = True
        self._harness.restart_tasks = False
        self._harness.conductor.drain()

    def stop(self) -> None:
        if self._is_open:
            self._harness.__exit__()
            self._is_open = False
