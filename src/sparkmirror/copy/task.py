"""A task: leases in, records copied, reports out, until the driver drains it or is gone.

One thread, one loop. Each turn: serve the sockets, send what is ready, fetch where there is room;
now and then: settle what is doubtful, give back what has ended, report. The driver's word is law:
when the last report that was answered by a beat is older than a lease, the task stops by itself and
says so, because by then somebody else may own its partitions.
"""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Iterable
from typing import Self

from sparkmirror.copy.committer import Committer
from sparkmirror.copy.course import Course
from sparkmirror.copy.dial import dial
from sparkmirror.copy.doubting import Doubting
from sparkmirror.copy.fetching import Fetching
from sparkmirror.copy.link import Link
from sparkmirror.copy.loop import Loop
from sparkmirror.copy.messages import (
    Beat,
    Dismiss,
    Done,
    Drain,
    Ended,
    Grant,
    Hello,
    How,
    Message,
    Rate,
    Revoke,
    Welcome,
)
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.partition import Partition
from sparkmirror.copy.producing import Producing
from sparkmirror.copy.repeating import Repeating
from sparkmirror.copy.reporting import Reporting
from sparkmirror.copy.settings import Settings, target_from_json
from sparkmirror.copy.side import Side
from sparkmirror.copy.sorting import Sorter
from sparkmirror.copy.term import Term
from sparkmirror.copy.throttle import Throttle
from sparkmirror.copy.transacting import Transacting
from sparkmirror.copy.transaction import Transaction
from sparkmirror.errors import ClusterUnavailable, MirrorError
from sparkmirror.mirror.runs import Run
from sparkmirror.wire.buffers import Budget
from sparkmirror.wire.routing import Router

log = logging.getLogger(__name__)

IDLE_TURN_S = 0.5
BUSY_TURN_S = 0.01
TEND_EVERY_S = 0.01
"""How often to look after every partition. At a thousand records a second there are two thousand
turns, of which one partition each is concerned."""
WELCOME_WITHIN_S = 30.0


class LeaseLost(ClusterUnavailable):
    """The driver was not heard for the length of a lease, or has given up this task."""


class Task:
    """Copies what it is granted."""

    def __init__(self, settings: Settings, link: Link, early: Iterable[Message] = ()) -> None:
        """Take over a link on which the welcome was heard; `early` came right behind it."""
        self.settings = settings
        self.loop = Loop()
        self.courses: dict[str, Course] = {}
        self.budget = Budget(settings.memory_bytes)
        source = dial(settings.source_alias, settings.source, settings.client_id)
        target = dial(settings.target_alias, settings.target, settings.client_id)
        self.source = Side(self.loop, *source, self.budget)
        self.target = Side(self.loop, *target, Budget(0))
        self.throttle = Throttle(settings.bytes_per_s)
        self.fetching = Fetching(self.source, settings.read_committed, settings.rack, self._arrived)
        self.source.learned = self.fetching.look_now
        self.producing = Producing(
            self.target, settings.in_flight, self._acknowledged, lambda: time.time_ns() // 1_000_000
        )
        self.repeating = Repeating(self.loop, Router(*target), self.producing.has_news)
        self.doubting = Doubting(
            self.loop, Router(*target), self._acknowledged, self.producing.has_news
        )
        self.link = link
        self.reporting = Reporting(settings.report_every_s, link.send, self._trouble)
        self._tend_at = 0.0
        self._drain_by: float | None = None
        self._to_target = target
        self._transacting: Transacting | None = None
        """In exactly-once mode, from the first grant on."""
        link.heard = self._heard
        for message in early:
            self._heard(message)

    @classmethod
    def at(cls, address: tuple[str, int], secret: bytes, hello: Hello) -> Self:
        """Report for duty at a driver and wait to be welcomed."""
        heard: list[Message] = []
        link = Link.connect(address, secret, heard.append)
        link.send(hello)
        deadline = time.monotonic() + WELCOME_WITHIN_S
        while not heard:
            if not select.select([link], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise LeaseLost("driver", f"no welcome within {WELCOME_WITHIN_S:.0f} s")
            link.on_readable()
        welcome = heard.pop(0)
        if not isinstance(welcome, Welcome):
            raise LeaseLost("driver", f"said {type(welcome).__name__} instead of a welcome")
        return cls(Settings.from_json(welcome.settings), link, heard)

    # -- life ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Copy until drained. Raises LeaseLost or LinkLost when the driver is gone."""
        self.loop.watch(self.link, self._driver_gone)
        try:
            while not self._is_done():
                self.turn()
            self.reporting.report(self.courses.values())
            self.link.send(Done())
            while self.link.wants_write:
                self.loop.turn(IDLE_TURN_S)
            self.link.finish()
        finally:
            self.close()

    def turn(self) -> None:
        """Do everything that can be done now, then wait a moment for more."""
        now = time.monotonic()
        self._check_lease(now)
        if self._transacting:
            self._transacting.pump(self.courses.values(), now)
        self.producing.pump(now)  # what is here goes on before more is asked for
        self.fetching.pump(self.courses.values(), now, self.throttle)
        if now >= self._tend_at:
            self._tend(now)
            self._tend_at = now + TEND_EVERY_S
            rest_s = self._patience_s(now)
        else:
            rest_s = self._tend_at - now  # what has happened meanwhile is looked after first
        self.loop.turn(min(rest_s, self._next_chance_s(now)))

    def _tend(self, now: float) -> None:
        """Look after everything that no record on its way depends on."""
        self.source.pump(now)
        self.target.pump(now)
        self.repeating.pump(self.courses.values(), now)
        self.doubting.pump(self.courses.values())
        self._give_back(now)
        self.reporting.report_if_due(self.courses.values(), now)

    def _check_lease(self, now: float) -> None:
        """Before anything is sent: by now another task may own the partitions."""
        if now - self.reporting.leased_at > self.settings.lease_s:
            raise LeaseLost(
                "driver",
                f"not heard for {self.settings.lease_s:.0f} s; copying stops until it is back",
            )

    def close(self) -> None:
        """Let go of everything, without a word."""
        self.source.close()
        self.target.close()
        self.loop.forget(self.link)
        self.link.close()
        self.loop.close()

    def _is_done(self) -> bool:
        return self._drain_by is not None and not self.courses

    def _patience_s(self, now: float) -> float:
        """How long nothing but an event can change anything."""
        wait = min(IDLE_TURN_S, max(self.reporting.due_at - now, 0.0))
        if any(
            course.reading.why or course.writing.why or course.settling
            for course in self.courses.values()
        ):
            wait = min(wait, BUSY_TURN_S)
        return wait

    def _next_chance_s(self, now: float) -> float:
        """How long until a transaction may end, or more may be fetched."""
        transacting_s = self._transacting.wait_s(now) if self._transacting else IDLE_TURN_S
        return min(transacting_s, self.throttle.wait_s(now) or IDLE_TURN_S)

    # -- the driver's word ---------------------------------------------------------------------

    def _heard(self, message: Message) -> None:
        self._tend_at = 0.0
        match message:
            case Beat():
                self.reporting.answered()
            case Dismiss():
                raise LeaseLost("driver", f"this task was given up: {message.why}")
            case Grant():
                self._grant(message)
            case Revoke():
                self._revoke(message)
            case Rate():
                self.throttle.bytes_per_s = message.bytes_per_s
            case Drain():
                self._drain_by = time.monotonic() + self.settings.drain_s
                for course in self.courses.values():
                    course.close()
            case _:
                log.warning("A driver does not say %s", type(message).__name__)

    def _grant(self, grant: Grant) -> None:
        if grant.term:
            self._begin(grant.term)
        self.fetching.look_now()
        for lease in grant.leases:
            rules = target_from_json(grant.targets[lease.target.topic])
            sorter = Sorter(rules, self.settings.read_committed, leader_epoch=lease.source_epoch)
            course = Course(Partition(lease, self.producing.transaction), sorter)
            assert course.key not in self.courses, "a lease is granted once"
            self.courses[course.key] = course
            self.source.follow(lease.source.topic)
            self.target.follow(lease.target.topic)
            if self._drain_by is not None:
                course.close()

    def _begin(self, term: Term) -> None:
        """Commit under this term from now on, unless it has begun, or failed, already."""
        if self._transacting and self._transacting.transaction.term == term:
            return
        assert not self.courses, "a term ends with the last lease of it"
        transaction = Transaction(term)
        self.producing.transaction = transaction
        self._transacting = Transacting(
            self.loop,
            transaction,
            # With a router of its own: what the last term has under way may not have ended yet.
            Committer(Router(*self._to_target), term, self.settings.source_alias),
            self.reporting.count,
        )

    def _revoke(self, revoke: Revoke) -> None:
        for key in revoke.partitions:
            if key in self.courses:
                self.courses[key].close()

    def _driver_gone(self, error: MirrorError) -> None:
        raise error

    # -- copying -------------------------------------------------------------------------------

    def _arrived(self, course: Course, size: int) -> None:
        self.throttle.spend(size, time.monotonic())
        self.producing.has_news(course)

    def _acknowledged(self, course: Course, parcel: Parcel, runs: list[Run]) -> None:
        if self._transacting:
            self._transacting.landed(course, parcel, runs)
        else:
            self.reporting.count(course, parcel, runs)

    # -- giving back -----------------------------------------------------------------------------

    def _give_back(self, now: float) -> None:
        if self._drain_by is not None and now > self._drain_by:
            self._end_all(How.AMBIGUOUS, "not acknowledged in time while draining")
        if self._transacting and self._transacting.failure:
            self._end_all(*self._transacting.failure)
        leaving = [key for key, course in self.courses.items() if self._may_go(course)]
        if leaving:
            self.fetching.look_now()
            # What was copied is told before the lease ends.
            self.reporting.report(self.courses.values())
        for key in leaving:
            course = self.courses.pop(key)
            self.producing.forget(course)
            is_clean = self._is_clean(course)
            lease = course.partition.abandon()
            assert course.how is not None
            self.link.send(
                Ended(
                    partition=key,
                    how=course.how,
                    why=course.why,
                    position=lease.position,
                    expected=lease.expected,
                    records=lease.records,
                    is_clean=is_clean,
                )
            )

    def _end_all(self, how: How, why: str) -> None:
        if self._transacting:
            self._transacting.transaction.fail(how, why)
        for course in self.courses.values():
            course.end_with(how, why)

    def _may_go(self, course: Course) -> bool:
        if not course.is_out:
            return False
        return self._transacting is None or self._transacting.has_settled(course)

    def _is_clean(self, course: Course) -> bool:
        """Whether the fate of everything of it is known, and it may go on without a fence."""
        if self._transacting and self._transacting.failure:
            return False
        return course.partition.is_certain and course.how is not How.FENCED

    def _trouble(self, course: Course) -> str:
        lease = course.partition.lease
        return self.target.trouble_with(lease.target) or self.source.trouble_with(lease.source)
