"""Repeating: nobody answered for what was sent. Is it recognised if it comes again?

A leader recognises a batch by the sequence of its producer as long as it remembers that producer.
How long it does depends on the times in the records and on its own clock. Ours may be a day off, so
it is the leader that is asked:

    it remembers the producer               it recognises what it has: send again
    it does not, and its log ends where     it has none of it: send again
    the oldest unanswered batch belongs
    it does not, and there is more          somebody must look, behind a fence: the lease ends

Where that may not be asked (without the right to read) or cannot be (brokers before 2.8), it is
sent again: data that is old by our own clock does not get here. Asks about all partitions at once,
in the background of a task, on a router of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sparkmirror.copy.course import Course
from sparkmirror.copy.loop import Loop
from sparkmirror.copy.messages import How
from sparkmirror.errors import MirrorError, NotAuthorized, UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.offsets import LATEST, list_offsets
from sparkmirror.wire.producers import describe_producers
from sparkmirror.wire.routing import Router

ANSWER_WITHIN_S = 3.0


class Sent(NamedTuple):
    """Who sent to a remote partition, and where the oldest unanswered batch belongs."""

    producer_id: int
    expected: int


def repeatable(router: Router, sent: Mapping[TopicPartition, Sent]) -> dict[TopicPartition, bool]:
    """Whether what was sent to each partition may come again; one that nobody leads is left out."""
    try:
        known = describe_producers(router, sent, timeout_s=ANSWER_WITHIN_S)
    except (NotAuthorized, UnsupportedByBroker):
        return dict.fromkeys(sent, True)
    verdicts: dict[TopicPartition, bool] = {}
    forgotten: list[TopicPartition] = []
    for partition, (code, producers) in known.items():
        if producers is not None and sent[partition].producer_id not in producers:
            forgotten.append(partition)
        elif producers is not None or _sending_tells(code):
            verdicts[partition] = True
    ends = list_offsets(router, dict.fromkeys(forgotten, LATEST), timeout_s=ANSWER_WITHIN_S)
    for partition, (code, listed) in ends.items():
        if listed is not None:
            verdicts[partition] = listed.offset == sent[partition].expected
        elif _sending_tells(code):
            verdicts[partition] = True
    return verdicts


def _sending_tells(code: Code) -> bool:
    """Whether the code will not pass by itself: whoever sends again hears what it means."""
    return not code.is_worth_retrying or code is Code.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(slots=True)
class Repeating:
    """Lets partitions send again, or ends their leases."""

    loop: Loop
    router: Router
    cleared: Callable[[Course], None]
    """Told when a partition may send again."""
    _is_asking: bool = False

    def pump(self, courses: Iterable[Course], now: float) -> None:
        """Ask about all that waits to know."""
        if self._is_asking:
            return
        waiting = {
            course.partition.lease.target: course
            for course in courses
            if course.unanswered
            and course.is_sending
            and not course.partition.requests
            and now >= course.writing.until
        }
        if not waiting:
            return
        self._is_asking = True
        sent = {
            target: Sent(course.partition.lease.identity.producer_id, course.partition.expected)
            for target, course in waiting.items()
        }
        self.loop.in_background(
            partial(repeatable, self.router, sent),
            partial(self._heard, waiting),
            partial(self._heard_nothing, waiting),
        )

    def _heard(
        self, waiting: Mapping[TopicPartition, Course], verdicts: Mapping[TopicPartition, bool]
    ) -> None:
        self._is_asking = False
        for target, course in waiting.items():
            if target not in verdicts:
                course.writing.begin(course.writing.why, time.monotonic())
            elif verdicts[target]:
                course.unanswered = False
                self.cleared(course)
            else:
                course.end_with(
                    How.AMBIGUOUS,
                    f"{course.writing.why}; the target has forgotten who sent it, so it is not sent"
                    " twice without looking",
                )

    def _heard_nothing(self, waiting: Mapping[TopicPartition, Course], error: MirrorError) -> None:
        self._is_asking = False
        for course in waiting.values():
            course.writing.begin(f"target: {error}", time.monotonic())
