"""The lines of a driver: its own status always, that of a job if it has changed or is old."""

from __future__ import annotations

import io
from dataclasses import replace

from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.engine.driver.driver_main import StatusLineWriter
from sparkmirror.engine.supervisor.driver_status import (
    JOB_STATUS_INTERVAL_S,
    DriverPhase,
    DriverStatus,
)

DRIVER = DriverStatus(phase=DriverPhase.RUNNING)


class WrittenLines:
    """A writer with a clock of its own, and what it wrote."""

    def __init__(self) -> None:
        self.now = 0.0
        self._output = io.BytesIO()
        self.write = StatusLineWriter(self._output, lambda: self.now)

    def statuses(self) -> list[DriverStatus]:
        """Read all lines as a supervisor does."""
        seen: dict[str, CopySnapshot] = {}
        statuses = []
        for line in self._output.getvalue().splitlines():
            statuses.append(DriverStatus.from_line(line, seen))
            seen[statuses[-1].job] = statuses[-1].snapshot
        return statuses


def job_status(name: str, position: int) -> DriverStatus:
    view = PartitionView(remote="A.t", task=0, state="leased", position=position)
    snapshot = CopySnapshot(partitions={"t-0": view})
    return replace(DRIVER, job=name, snapshot=snapshot)


def test_the_status_of_an_unchanged_job_is_written_again_only_after_some_seconds() -> None:
    lines = WrittenLines()
    for _ in range(3):
        lines.write(job_status("one", 1))
        lines.now += JOB_STATUS_INTERVAL_S / 2
    assert lines.statuses() == [job_status("one", 1)] * 2


def test_the_status_of_the_driver_is_always_written() -> None:
    lines = WrittenLines()
    for _ in range(3):
        lines.write(DRIVER)
    assert lines.statuses() == [DRIVER] * 3


def test_each_line_holds_the_changes_of_its_own_job() -> None:
    lines, written = WrittenLines(), []
    for position in (1, 2):
        for name in ("one", "two"):
            written.append(job_status(name, position))
            lines.write(written[-1])
    assert lines.statuses() == written
