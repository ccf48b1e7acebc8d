"""Tasks come, report and go: who is there, who holds which place, and what becomes of it.

What the conductor does with places (`conductor`) begins where this ends: here a place is freed,
cleanly or doubtfully, and there somebody gets it again. Knows no cluster and does not wait: every
method is called with the conductor's lock held.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from sparkmirror.copy.attempts import Attempt, Attempts
from sparkmirror.copy.book import Book
from sparkmirror.copy.counterfoils import Counterfoils
from sparkmirror.copy.events import Events
from sparkmirror.copy.granting import Granting
from sparkmirror.copy.job import Job
from sparkmirror.copy.messages import (
    Done,
    Ended,
    Hello,
    How,
    Message,
    Rate,
    Report,
    Revoke,
    Welcome,
)
from sparkmirror.copy.openings import Openings
from sparkmirror.copy.place import NOBODY, Place, State
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.copy.telling import Telling
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Reception:
    """Where tasks come to, with all places of a job."""

    job: Job
    book: Book
    events: Events
    telling: Telling
    openings: Openings
    granting: Granting
    counterfoils: Counterfoils
    attempts: Attempts = field(default_factory=Attempts)
    places: dict[TopicPartition, Place] = field(init=False)
    is_draining: bool = False
    _lanes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        self.places = {
            partition: Place(partition, self.job.remote(partition), task)
            for task, partitions in enumerate(self.job.tasks)
            for partition in partitions
        }

    def snapshot(self) -> Snapshot:
        """Where everything stands, as of the last reports."""
        return Snapshot(
            partitions={
                str(p): place.view()
                for p, place in self.places.items()
                if place.is_wanted or place.state is State.LEASED
            },
            lanes={topic: dict(counts) for topic, counts in self._lanes.items()},
            events=self.events.latest(),
        )

    @property
    def is_drained(self) -> bool:
        """Whether everything was asked back, and came."""
        return self.is_draining and all(
            place.state is not State.LEASED for place in self.places.values()
        )

    # -- tasks -----------------------------------------------------------------------------------

    def join(self, attempt: Attempt) -> None:
        """A task attempt has come; another one of its task is given up for it."""
        before = self.attempts.before(attempt.hello)
        if before:
            self.lose(before.hello, "another attempt of its task has come")
        self.attempts.add(attempt)
        self.counterfoils.began(attempt.hello)
        attempt.send(Welcome(settings=self.job.settings.to_json()))
        if self.is_draining:
            attempt.drain()

    def hear(self, hello: Hello, message: Message) -> None:
        """A task attempt has said something."""
        attempt = self.attempts.of(hello)
        if attempt is None:
            return  # a task that was given up: whatever it says, its partitions were taken over
        attempt.heard_at = time.monotonic()
        match message:
            case Report():
                self._take_report(hello, message)
            case Ended():
                self._end_lease(hello, message)
            case Done():
                self._see_off(hello)
            case _:
                log.warning("A task does not say %s", type(message).__name__)

    def _take_report(self, hello: Hello, report: Report) -> None:
        for topic, counts in report.lanes.items():
            self._lanes[topic].update(counts)
        for key, standing in report.standings.items():
            place = self._owned_by(hello, key)
            if place:
                place.stands(standing)
        for key, source_first, target_first, length in report.runs:
            place = self._owned_by(hello, key)
            if place:
                place.copied(source_first, target_first, length)
                self.telling.copied(place.source, Run(source_first, target_first, length))
        for key, size in report.bytes.items():
            place = self._owned_by(hello, key)
            if place:
                place.bytes += size

    def _end_lease(self, hello: Hello, ended: Ended) -> None:
        place = self._owned_by(hello, ended.partition)
        if place is None:
            return
        now = time.monotonic()
        place.moved(ended.position, ended.expected, ended.records)
        self.counterfoils.add(hello, place)
        place.is_free(clean=ended.is_clean, now=now)
        if place.is_transactional:
            self._end_in_term(hello, place)
        if ended.how is How.CLOSED:
            return
        if ended.why != place.told:
            self.events.tell(ended.how.value, place, ended.why)
            place.told = ended.why
        match ended.how:
            case How.OUT_OF_RANGE | How.SOURCE_GONE | How.TARGET_GONE if not place.is_void:
                self.book.note(place)
                place.hold(ended.why, now, then=State.WAITING)
            case How.REFUSED | How.NOT_AUTHORIZED:
                self.granting.forget_rules(place.target.topic)
                place.hold(ended.why, now, then=place.state)

    def _end_in_term(self, hello: Hello, place: Place) -> None:
        """What ends cleanly was committed; what does not ends the term of the whole task."""
        if place.state is State.WAITING:
            self.book.learn(place)
        elif attempt := self.attempts.of(hello):
            attempt.term = None

    def lose(self, hello: Hello, why: str) -> None:
        """Give a task attempt up: what it had is doubtful."""
        attempt = self.attempts.of(hello)
        if attempt is None:
            return
        self.attempts.remove(hello)
        attempt.dismiss(why)
        now = time.monotonic()
        owned = [place for place in self.places.values() if place.owner == hello]
        for place in owned:
            self.counterfoils.add(hello, place)
            place.is_free(clean=False, now=now)
        self.counterfoils.lost(hello)
        if owned:
            log.warning(
                "Task %d (attempt %d) is given up: %s; %d partitions are taken over",
                hello.task,
                hello.attempt,
                why,
                len(owned),
            )

    def _see_off(self, hello: Hello) -> None:
        """A task has given everything back; what was granted since then it never used."""
        self.attempts.remove(hello)
        self.counterfoils.handed_in(hello)
        now = time.monotonic()
        for place in self.places.values():
            if place.owner == hello:
                place.is_free(clean=True, now=now)

    def find_silent(self, now: float) -> None:
        """Give up whoever was not heard for too long."""
        for attempt in self.attempts.silent_since(now - self.job.silence_s):
            self.lose(attempt.hello, f"nothing heard for {self.job.silence_s:.0f} s")

    def _owned_by(self, hello: Hello, key: str) -> Place | None:
        place = self.places.get(TopicPartition.parse(key))
        return place if place and place.owner == hello else None

    def drain(self) -> None:
        """Ask for everything back, for good."""
        self.is_draining = True
        self.end_epoch()

    def end_epoch(self) -> None:
        """Ask those who are there for everything back."""
        for attempt in self.attempts.staying():
            attempt.drain()

    def replan(self, job: Job) -> None:
        """Go on with another job; what another task gets is asked back first."""
        self.job = self.openings.job = job
        self.granting.on_loss = job.on_loss
        tasks = {partition: n for n, task in enumerate(job.tasks) for partition in task}
        for partition, task in tasks.items():
            place = self.places.get(partition)
            if place is None:
                self.places[partition] = Place(partition, job.remote(partition), task)
            else:
                if not place.is_wanted and place.lease and place.state is State.WAITING:
                    self.book.note(place)  # long ago perhaps: both logs are looked at again
                place.task = task
        for partition, place in self.places.items():
            if partition not in tasks:
                place.task = NOBODY
        for attempt in self.attempts.staying():
            moved = [
                str(place.source)
                for place in self.places.values()
                if place.owner == attempt.hello and place.task != attempt.hello.task
            ]
            if moved:
                attempt.send(Revoke(partitions=moved))

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task, those to come too."""
        settings = replace(self.job.settings, bytes_per_s=bytes_per_s)
        self.job = replace(self.job, settings=settings)
        for attempt in self.attempts:
            attempt.send(Rate(bytes_per_s=bytes_per_s))
