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

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.errors import MirrorError, NotAuthorized, UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.offsets import LATEST, list_offsets
from sparkmirror.wire.protocol.producer_ids import describe_producers

REQUEST_TIMEOUT_S = 3.0


class UnacknowledgedSend(NamedTuple):
    """Who sent to a remote partition, and where the oldest unanswered batch belongs."""

    producer_id: int
    expected: int


def find_resendable(
    router: Router, sent: Mapping[TopicPartition, UnacknowledgedSend]
) -> dict[TopicPartition, bool]:
    """Whether what was sent to each partition may come again; one that nobody leads is left out."""
    try:
        known = describe_producers(router, sent, timeout_s=REQUEST_TIMEOUT_S)
    except (NotAuthorized, UnsupportedByBroker):
        return dict.fromkeys(sent, True)
    verdicts: dict[TopicPartition, bool] = {}
    forgotten: list[TopicPartition] = []
    for partition, (code, producers) in known.items():
        if producers is not None and sent[partition].producer_id not in producers:
            forgotten.append(partition)
        elif producers is not None or _resend_reveals_error(code):
            verdicts[partition] = True
    ends = list_offsets(router, dict.fromkeys(forgotten, LATEST), timeout_s=REQUEST_TIMEOUT_S)
    for partition, (code, listed) in ends.items():
        if listed is not None:
            verdicts[partition] = listed.offset == sent[partition].expected
        elif _resend_reveals_error(code):
            verdicts[partition] = True
    return verdicts


def _resend_reveals_error(code: ErrorCode) -> bool:
    """Whether the code will not pass by itself: whoever sends again hears what it means."""
    return not code.is_retriable or code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(slots=True)
class ResendChecker:
    """Lets partitions send again, or ends their leases."""

    loop: EventLoop
    router: Router
    on_resendable: Callable[[LeasedPartition], None]
    """Told when a partition may send again."""
    _is_checking: bool = False

    def poll(self, courses: Iterable[LeasedPartition], now: float) -> None:
        """Ask about all that waits to know."""
        if self._is_checking:
            return
        waiting = {
            course.queue.lease.target: course
            for course in courses
            if course.needs_resend_check
            and course.can_send
            and not course.queue.open_requests
            and now >= course.send_backoff.until
        }
        if not waiting:
            return
        self._is_checking = True
        sent = {
            target: UnacknowledgedSend(
                course.queue.lease.identity.producer_id, course.queue.expected
            )
            for target, course in waiting.items()
        }
        self.loop.run_in_executor(
            partial(find_resendable, self.router, sent),
            partial(self._on_result, waiting),
            partial(self._on_error, waiting),
        )

    def _on_result(
        self,
        waiting: Mapping[TopicPartition, LeasedPartition],
        verdicts: Mapping[TopicPartition, bool],
    ) -> None:
        self._is_checking = False
        for target, course in waiting.items():
            if target not in verdicts:
                course.send_backoff.start(course.send_backoff.reason, time.monotonic())
            elif verdicts[target]:
                course.needs_resend_check = False
                self.on_resendable(course)
            else:
                course.end_now(
                    LeaseEndReason.AMBIGUOUS,
                    f"{course.send_backoff.reason}; the target has forgotten who sent it, so it"
                    f" is not sent"
                    " twice without looking",
                )

    def _on_error(
        self, waiting: Mapping[TopicPartition, LeasedPartition], error: MirrorError
    ) -> None:
        self._is_checking = False
        for course in waiting.values():
            course.send_backoff.start(f"target: {error}", time.monotonic())
