"""The partitions of one source connector as the worker shows them. No threads, no clock.

planned   in the plan of its tasks
reported  in the last status of a running driver; the driver knows best
idle      planned and not reported: the last known position, no end, and why

driver                                    idle partitions are
starting, or has not read the plan yet    waiting
dead, failed, or silent for too long      held, with its problem as reason
any, and the connector is paused          paused
ended, because the connector is stopped   stopped
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparkmirror.copy.driver.tracked_partition import LeaseState
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import SPARK_STARTS, PartitionView
from sparkmirror.engine.supervisor.driver_status import SILENT_S, DriverPhase, DriverStatus
from sparkmirror.model import TopicPartition

SILENT_AFTER_S = SILENT_S + 2.0
"""After so long the last figures of a driver are not shown any more. The supervisor publishes the
silence after SILENT_S; this holds even if no thread reads what it publishes."""
NOT_REPORTED = "the Spark driver has not reported the partition yet"
NOT_COPIED = "no task copies the partition yet"
SILENT = f"the Spark driver has sent no status for more than {SILENT_AFTER_S:.0f} s"

_REPORTING = (DriverPhase.STARTING, DriverPhase.RUNNING, DriverPhase.DRAINING)
"""Phases with figures of this driver. A status with another phase repeats those of a dead one."""


class IdleState(enum.StrEnum):
    """States of a partition that the operator asked for; the driver's are in LeaseState."""

    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class _Idle:
    """The state of planned partitions that the driver does not report, and why."""

    state: str
    reason: str = ""


class PartitionStates:
    """The partitions of one source connector."""

    def __init__(self) -> None:
        self._planned: dict[str, PartitionView] = {}
        self._has_all_tasks = False
        """Whether the plan has all tasks of the connector. In a group others may have some."""
        self._last: dict[str, PartitionView] = {}
        """The latest view with a position, of each planned partition."""
        self._reported: Mapping[str, PartitionView] = {}
        self._reported_at = 0.0
        self._idle = _Idle(LeaseState.WAITING, SPARK_STARTS)
        self._requested: IdleState | None = None

    def on_plan(self, job: CopyJob) -> None:
        """Plan the partitions of a job. The connector runs, unless `on_requested` says else."""
        self._planned = {
            str(partition): PartitionView(
                remote=job.remote_partition(partition).topic, task=task, state=LeaseState.WAITING
            )
            for partition, task in job.task_of_partition().items()
        }
        self._has_all_tasks = len(job.tasks) == job.task_count
        self._last = {key: view for key, view in self._last.items() if key in self._planned}

    def on_requested(self, state: IdleState | None) -> None:
        """The operator paused or stopped the connector; None: it runs."""
        self._requested = state

    def on_status(self, status: DriverStatus, now: float) -> None:
        """Take the figures of a driver that runs; drop those of one that has died."""
        if status.phase not in _REPORTING:
            self.on_driver_ended(status.problem)
            return
        self._reported_at = now
        is_starting = status.phase is DriverPhase.STARTING
        self._idle = _Idle(
            LeaseState.HELD if is_starting and status.problem else LeaseState.WAITING,
            status.problem or (SPARK_STARTS if is_starting else NOT_REPORTED),
        )
        shown = _before_spark if is_starting else _while_running
        self._reported = {
            key: shown(self._with_last_position(key, view), status.problem)
            for key, view in status.snapshot.partitions.items()
        }
        known = {key: view for key, view in self._reported.items() if view.position >= 0}
        self._last |= {key: view for key, view in known.items() if key in self._planned}

    def on_driver_ended(self, problem: str = "") -> None:
        """Drop the figures: the driver has ended, with a problem or as it was asked to."""
        state = LeaseState.HELD if problem else LeaseState.WAITING
        self._reported, self._idle = {}, _Idle(state, problem or SPARK_STARTS)

    def partition_counts(self) -> dict[str, int]:
        """Return the number of partitions of each planned topic; none if other workers have some.

        Then the highest planned partition need not be the last one of its topic.
        """
        counts: dict[str, int] = {}
        if not self._has_all_tasks:
            return counts
        for topic, number in map(TopicPartition.parse, self._planned):
            counts[topic] = max(counts.get(topic, 0), number + 1)
        return counts

    def views(self, now: float) -> dict[str, PartitionView]:
        """Return the view of every partition, planned or reported."""
        reported, idle = self._reported, self._idle
        if reported and now - self._reported_at > SILENT_AFTER_S:
            reported, idle = {}, _Idle(LeaseState.HELD, SILENT)
        if self._requested is not None:
            idle = _Idle(self._requested)
        return {
            key: reported.get(key) or self._idle_view(key, planned, idle)
            for key, planned in self._planned.items()
        } | dict(reported)

    def _with_last_position(self, key: str, view: PartitionView) -> PartitionView:
        """Return the view. A driver that has just started does not know the position yet."""
        last = self._last.get(key)
        if view.position >= 0 or last is None:
            return view
        return replace(view, position=last.position, end=-1, records=last.records, bytes=last.bytes)

    def _idle_view(self, key: str, planned: PartitionView, idle: _Idle) -> PartitionView:
        last = self._last.get(key, planned)
        return replace(
            last,
            remote=planned.remote,
            task=planned.task,
            state=idle.state,
            end=-1,
            active=0,
            queued_bytes=0,
            reason=idle.reason,
            halted=False,
        )


def _before_spark(view: PartitionView, problem: str) -> PartitionView:
    """Return the view without an end: no task follows the log yet."""
    return replace(view, end=-1, reason=view.reason or problem or SPARK_STARTS)


def _while_running(view: PartitionView, problem: str) -> PartitionView:
    """Return the view. One that waits for a task without a reason gets the driver's problem."""
    if view.state != LeaseState.WAITING or view.reason:
        return view
    return replace(view, reason=problem or (NOT_COPIED if view.lag is None else ""))
