"""The conductor: who may copy what, from where, and what to do when a lease ends.

Lives in the driver, in a thread of its own with an inbox. Tasks come, report and go; the conductor
grants leases, remembers positions, takes partitions away from tasks that fell silent, and before
anybody else gets a partition whose lease did not end cleanly, fences it and finds out where it
stands.

    waiting ──grant──▶ leased ──clean end──▶ waiting (same identity, no fence)
       ▲                  └──anything else──▶ doubtful ──fence, reconcile──▶ waiting
       └──── after a while ──── held (a reason; all other partitions go on)

Contract for the transport (`engine`): call `joined` when a task attempt has said Hello, `said` for
every later message, `left` when its connection is gone; deliver what is given to `send`. All of
these may be called from any thread and return at once. Answer each Report with a Beat without
asking the conductor, which may be busy. A task that was given up is sent Dismiss: it ends in an
error, and another attempt of it is wanted. When an epoch is to end, call `end_epoch`: the conductor
drains every task that is there; the attempts of the next epoch get the leases back as they were.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace

from sparkmirror.copy.attempts import Attempt, Attempts, Send
from sparkmirror.copy.book import Book
from sparkmirror.copy.clusters import Clusters
from sparkmirror.copy.events import Events
from sparkmirror.copy.fence import Fences, Overtaken
from sparkmirror.copy.granting import Granting
from sparkmirror.copy.job import Job
from sparkmirror.copy.ledger import Ledger
from sparkmirror.copy.messages import Done, Ended, Hello, How, Message, Rate, Report, Welcome
from sparkmirror.copy.openings import Openings
from sparkmirror.copy.place import Place, State
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.copy.takeover import Takeover
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

TICK_S = 0.1


class Conductor:
    """Grants leases and keeps the ledger. Use: `start()`, feed events, `drain()`, `stop()`."""

    def __init__(self, job: Job, ledger: Ledger) -> None:
        self.job = job
        self._lock = threading.Lock()
        self._events = Events()
        self._attempts = Attempts()
        self._book = Book(ledger, self._lock)
        self._clusters = Clusters.dial(job.settings)
        fences = Fences(self._clusters.target, f"{job.group_id}-{job.connector}")
        self._granting = Granting(
            self._clusters,
            Openings(job, self._clusters, fences),
            self._book,
            self._events,
            job.on_loss,
        )
        self._takeover = Takeover(
            clusters=self._clusters,
            fences=fences,
            tell=self._events.tell,
            lease_s=job.settings.lease_s,
        )
        self._places = {
            partition: Place(partition, job.remote(partition), task)
            for task, partitions in enumerate(job.tasks)
            for partition in partitions
        }
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="conductor", daemon=True)
        self._stopping = False
        self._draining = False
        self._failure: Exception | None = None
        self._flush_at = 0.0
        self._trouble = ""
        self._records = self._bytes = 0
        self._lanes: dict[str, Counter[str]] = defaultdict(Counter)

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: reach both clusters, read the ledger, start the thread. Raises MirrorError."""
        self._clusters.source.refresh({place.source.topic for place in self._places.values()})
        self._clusters.target.refresh({place.target.topic for place in self._places.values()})
        self._book.load()
        self._thread.start()

    def joined(self, hello: Hello, send: Send) -> None:
        """A task attempt has come; it gets its welcome and its leases through `send`."""
        self._inbox.put(lambda: self._join(Attempt(hello, send, time.monotonic())))

    def said(self, hello: Hello, message: Message) -> None:
        """A task attempt has said something (Report, Ended, Done)."""
        self._inbox.put(lambda: self._hear(hello, message))

    def left(self, hello: Hello) -> None:
        """A task attempt is gone, however it went."""
        self._inbox.put(lambda: self._lose(hello, "its connection is gone"))

    def drain(self) -> None:
        """Have every task give everything back; positions are remembered as they do."""
        self._inbox.put(self._drain)

    def end_epoch(self) -> None:
        """Have the tasks that are there give everything back, for those that come after them."""
        self._inbox.put(self._end_epoch)

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to so many bytes a second; 0 lifts the limit."""
        self._inbox.put(lambda: self._set_rate(bytes_per_s))

    def snapshot(self) -> Snapshot:
        """Where everything stands, as of the last reports. Cheap; any thread."""
        with self._lock:
            return Snapshot(
                partitions={str(p): place.view() for p, place in self._places.items()},
                records=self._records,
                bytes=self._bytes,
                lanes={topic: dict(counts) for topic, counts in self._lanes.items()},
                events=self._events.latest(),
            )

    def runs(self, partition: TopicPartition) -> tuple[Run, ...]:
        """Which source offsets of a partition lie where on the target, as far as it is known."""
        with self._lock:
            return tuple(self._places[partition].runs)

    def is_drained(self) -> bool:
        """Whether `drain` was asked for and nothing is leased any more."""
        with self._lock:
            return self._draining and all(
                place.state is not State.LEASED for place in self._places.values()
            )

    def failure(self) -> Exception | None:
        """Why the conductor has ended by itself (another driver took over, a bug), if it has."""
        return self._failure

    def stop(self) -> None:
        """End the thread and hang up; what is not flushed is flushed. The ledger is closed."""
        self._stopping = True
        if self._thread.is_alive():
            self._thread.join(timeout=30)
        self._clusters.close()
        self._book.close()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._take_in()
                self._tick(time.monotonic())
            self._take_in()
            self._book.flush(self._places.values())
        except MirrorError as error:
            log.error("The conductor stops: %s", error)
            self._failure = error
        except Exception as error:
            log.exception("The conductor stops")
            self._failure = error

    def _take_in(self) -> None:
        """Handle what has arrived, waiting a moment for the first."""
        try:
            step = self._inbox.get(timeout=TICK_S)
            while True:
                with self._lock:
                    step()
                step = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _tick(self, now: float) -> None:
        """Take away, settle, grant, remember. Trouble with a cluster is no reason to end."""
        try:
            with self._lock:
                self._find_silent(now)
                for place in self._places.values():
                    place.wake(now)
            self._settle_doubts(now)
            self._grant_all(now)
            if now >= self._flush_at:
                self._book.flush(self._places.values())
                self._flush_at = now + self.job.flush_every_s
            self._trouble = ""
        except Overtaken:
            raise
        except MirrorError as error:
            if str(error) != self._trouble:
                log.warning("%s", error)
            self._trouble = str(error)

    def _settle_doubts(self, now: float) -> None:
        doubtful = [p for p in self._places.values() if p.state is State.DOUBTFUL]
        if doubtful:
            self._takeover.settle(doubtful, self._granting.rules(doubtful), now)
            settled = [place for place in doubtful if place.state is State.WAITING]
            self._book.save(settled, is_open=False)

    def _grant_all(self, now: float) -> None:
        if self._draining:
            return
        for attempt in self._attempts.staying():
            mine = [
                place
                for place in self._places.values()
                if place.state is State.WAITING and place.task == attempt.hello.task
            ]
            self._granting.grant(attempt, mine, now, self._lock)

    # -- tasks ------------------------------------------------------------------------------------

    def _join(self, attempt: Attempt) -> None:
        before = self._attempts.before(attempt.hello)
        if before:
            self._lose(before.hello, "another attempt of its task has come")
        self._attempts.add(attempt)
        attempt.send(Welcome(settings=self.job.settings.to_json()))
        if self._draining:
            attempt.drain()

    def _hear(self, hello: Hello, message: Message) -> None:
        attempt = self._attempts.of(hello)
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
        self._records += report.records
        self._bytes += report.bytes
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

    def _end_lease(self, hello: Hello, ended: Ended) -> None:
        place = self._owned_by(hello, ended.partition)
        if place is None:
            return
        now = time.monotonic()
        place.moved(ended.position, ended.expected)
        place.is_free(clean=ended.is_clean, now=now)
        if ended.how is How.CLOSED:
            return
        if ended.why != place.told:
            self._events.tell(ended.how.value, place, ended.why)
            place.told = ended.why
        match ended.how:
            case How.OUT_OF_RANGE | How.SOURCE_GONE | How.TARGET_GONE:
                self._book.note(place)
                place.hold(ended.why, now, then=State.WAITING)
            case How.REFUSED | How.NOT_AUTHORIZED:
                self._granting.forget_rules(place.target.topic)
                place.hold(ended.why, now, then=place.state)

    def _lose(self, hello: Hello, why: str) -> None:
        attempt = self._attempts.of(hello)
        if attempt is None:
            return
        self._attempts.remove(hello)
        attempt.dismiss(why)
        now = time.monotonic()
        owned = [place for place in self._places.values() if place.owner == hello]
        for place in owned:
            place.is_free(clean=False, now=now)
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
        self._attempts.remove(hello)
        now = time.monotonic()
        for place in self._places.values():
            if place.owner == hello:
                place.is_free(clean=True, now=now)

    def _find_silent(self, now: float) -> None:
        for attempt in self._attempts.silent_since(now - self.job.silence_s):
            self._lose(attempt.hello, f"nothing heard for {self.job.silence_s:.0f} s")

    def _owned_by(self, hello: Hello, key: str) -> Place | None:
        place = self._places.get(TopicPartition.parse(key))
        return place if place and place.owner == hello else None

    def _drain(self) -> None:
        self._draining = True
        self._end_epoch()

    def _end_epoch(self) -> None:
        for attempt in self._attempts.staying():
            attempt.drain()

    def _set_rate(self, bytes_per_s: int) -> None:
        settings = replace(self.job.settings, bytes_per_s=bytes_per_s)
        self.job = replace(self.job, settings=settings)
        for attempt in self._attempts:
            attempt.send(Rate(bytes_per_s=bytes_per_s))
