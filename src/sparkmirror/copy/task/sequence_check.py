"""Doubts: the target refuses a sequence. Does it hold the batch already?

Finds out, one partition at a time, in the background of a task and on a router of its own, how far
the target's log holds what was sent. What it holds is acknowledged, the rest is sent again; where
it holds none of what it refuses, or cannot be asked, the lease ends and the driver decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.task.appended_end import appended_end
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.net.routing import Router


@dataclass(slots=True)
class SequenceChecker:
    """Settles what a target doubts."""

    loop: EventLoop
    router: Router
    on_acknowledged: Callable[[LeasedPartition, PendingBatch, list[OffsetRun]], None]
    """Told what turns out to be on the target."""
    on_resolved: Callable[[LeasedPartition], None]
    """Told when a partition may send again."""
    _is_checking: bool = False

    def poll(self, courses: Iterable[LeasedPartition]) -> None:
        """Ask about the first partition in doubt of which nothing is under way."""
        if self._is_checking:
            return
        for course in courses:
            if course.needs_sequence_check and not course.queue.open_requests and course.can_send:
                self._check(course)
                return

    def _check(self, course: LeasedPartition) -> None:
        self._is_checking = True
        partition = course.queue
        self.loop.run_in_executor(
            partial(appended_end, self.router, partition.lease, partition.expected),
            partial(self._on_end_offset, course),
            partial(self._on_error, course),
        )

    def _on_end_offset(self, course: LeasedPartition, end: int | None) -> None:
        self._is_checking = course.needs_sequence_check = False
        acknowledged = partial(self.on_acknowledged, course)
        if end is None or not course.queue.acknowledge_up_to(end, acknowledged):
            course.end_now(
                LeaseEndReason.AMBIGUOUS,
                "the target refuses a sequence and does not hold the batch",
            )
        course.queue.resend_in_flight()
        self.on_resolved(course)

    def _on_error(self, course: LeasedPartition, error: MirrorError) -> None:
        self._is_checking = course.needs_sequence_check = False
        course.end_now(LeaseEndReason.AMBIGUOUS, str(error))
