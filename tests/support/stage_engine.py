"""The stage as an engine for `copy`: the command on real brokers, without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from sparkmirror.cli.copy_engine import Where
from sparkmirror.copy.job import Job
from sparkmirror.copy.settings import Settings
from sparkmirror.engine.ledger import OffsetsTopicLedger
from sparkmirror.engine.status import Phase, Status
from tests.support.flows import QUICK, SILENCE_S
from tests.support.stage import Stage

STATUS_EVERY_S = 0.2


class StageEngine:
    """Runs a job with tasks as processes."""

    def __init__(self, job: Job, where: Where) -> None:
        del where
        settings = Settings.from_json(job.settings.to_json() | QUICK)
        quick = replace(job, settings=settings, silence_s=SILENCE_S)
        self._stage = Stage(quick, OffsetsTopicLedger.of(quick))
        self._is_draining = False
        self._is_open = False

    def start(self) -> None:
        self._stage.__enter__()
        self._is_open = True

    def statuses(self) -> Iterator[Status]:
        while not self._stage.conductor.is_drained():
            phase = Phase.DRAINING if self._is_draining else Phase.RUNNING
            yield Status(phase=phase, snapshot=self._stage.snapshot)
            time.sleep(STATUS_EVERY_S)
        yield Status(phase=Phase.STOPPED, snapshot=self._stage.snapshot)

    def drain(self) -> None:
        self._is_draining = True
        self._stage.restarts = False
        self._stage.conductor.drain()

    def stop(self) -> None:
        if self._is_open:
            self._stage.__exit__()
            self._is_open = False
