"""Doubts: the target refuses a sequence. Does it hold the batch already?

Finds out, one partition at a time, in the background of a task and on a router of its own, how far
the target's log holds what was sent. What it holds is acknowledged, the rest is sent again; where
it holds none of what it refuses, or cannot be asked, the lease ends and the driver decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from sparkmirror.copy.course import Course
from sparkmirror.copy.loop import Loop
from sparkmirror.copy.messages import How
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.settling import settled_end
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.runs import Run
from sparkmirror.wire.routing import Router


@dataclass(slots=True)
class Doubting:
    """Settles what a target doubts."""

    loop: Loop
    router: Router
    acknowledged: Callable[[Course, Parcel, list[Run]], None]
    """Told what turns out to be on the target."""
    settled: Callable[[Course], None]
    """Told when a partition may send again."""
    _is_asking: bool = False

    def pump(self, courses: Iterable[Course]) -> None:
        """Ask about the first partition in doubt of which nothing is under way."""
        if self._is_asking:
            return
        for course in courses:
            if course.settling and not course.partition.requests and course.is_sending:
                self._ask(course)
                return

    def _ask(self, course: Course) -> None:
        self._is_asking = True
        partition = course.partition
        self.loop.in_background(
            partial(settled_end, self.router, partition.lease, partition.expected),
            partial(self._heard, course),
            partial(self._heard_nothing, course),
        )

    def _heard(self, course: Course, end: int | None) -> None:
        self._is_asking = course.settling = False
        acknowledged = partial(self.acknowledged, course)
        if end is None or not course.partition.settle(end, acknowledged):
            course.end_with(
                How.AMBIGUOUS, "the target refuses a sequence and does not hold the batch"
            )
        course.partition.send_again()
        self.settled(course)

    def _heard_nothing(self, course: Course, error: MirrorError) -> None:
        self._is_asking = course.settling = False
        course.end_with(How.AMBIGUOUS, str(error))
