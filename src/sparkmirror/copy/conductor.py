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
asking the conductor, which may be busy. When an epoch is to end, call `end_epoch`: the conductor
drains every task that is there; the attempts of the next epoch get the leases back as they were.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from sparkmirror.copy.clusters import Clusters
from sparkmirror.copy.fence import Fences, Overtaken
from sparkmirror.copy.job import Job
from sparkmirror.copy.ledger import Entry, Ledger, entry_of
from sparkmirror.copy.losses import Loss
from sparkmirror.copy.messages import (
    Done,
    Drain,
    Ended,
    Grant,
    Hello,
    How,
    Message,
    Rate,
    Report,
    Welcome,
)
from sparkmirror.copy.openings import Opening, Openings
from sparkmirror.copy.place import Place, State
from sparkmirror.copy.settings import target_to_json
from sparkmirror.copy.snapshot import Event, Snapshot
from sparkmirror.copy.takeover import Takeover
from sparkmirror.errors import MirrorError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.target import Target

log = logging.getLogger(__name__)

Send = Callable[[Message], None]

TICK_S = 0.1
EVENTS_KEPT = 200
FIRST_GRANT_SIZE = 500
"""Places opened at once: large enough for few requests, small enough to answer in between."""


@dataclass(slots=True)
class Attempt:
    """A task attempt that is connected."""

    hello: Hello
    send: Send
    heard_at: float
    is_leaving: bool = False

    def drain(self) -> None:
        """Ask for everything back; it gets nothing more."""
        self.is_leaving = True
        self.send(Drain())


class Conductor:
    """Grants leases and keeps the ledger. Use: `start()`, feed events, `drain()`, `stop()`."""

    def __init__(self, job: Job, ledger: Ledger) -> None:
        self.job = job
        self._ledger = ledger
        self._clusters = Clusters.dial(job.settings)
        self._fences = Fences(self._clusters.target, f"{job.group_id}-{job.connector}")
        self._openings = Openings(job, self._clusters, self._fences)
        self._takeover = Takeover(self._clusters, self._fences, self._tell)
        self._places = {
            partition: Place(partition, job.remote(partition), task)
            for task, partitions in enumerate(job.tasks)
            for partition in partitions
        }
        self._entries: dict[TopicPartition, Entry] = {}
        self._rules: dict[str, Target | Code] = {}
        self._attempts: dict[int, Attempt] = {}
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="conductor", daemon=True)
        self._stopping = False
        self._draining = False
        self._failure: Exception | None = None
        self._flush_at = 0.0
        self._trouble = ""
        self._records = self._bytes = 0
        self._lanes: dict[str, Counter[str]] = defaultdict(Counter)
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: reach both clusters, read the ledger, start the thread. Raises MirrorError."""
        self._clusters.source.refresh({place.source.topic for place in self._places.values()})
        self._clusters.target.refresh({place.target.topic for place in self._places.values()})
        self._entries = self._ledger.load()
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
                events=tuple(self._events),
            )

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
        """End the thread; what is not flushed is flushed."""
        self._stopping = True
        if self._thread.is_alive():
            self._thread.join(timeout=30)
        self._clusters.close()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._take_in()
                self._tick(time.monotonic())
            self._take_in()
            self._flush(time.monotonic())
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
                self._flush(now)
            self._trouble = ""
        except Overtaken:
            raise
        except MirrorError as error:
            if str(error) != self._trouble:
                log.warning("%s", error)
            self._trouble = str(error)

    # -- tasks ------------------------------------------------------------------------------------

    def _join(self, attempt: Attempt) -> None:
        before = self._attempts.get(attempt.hello.task)
        if before:
            self._lose(before.hello, "another attempt of its task has come")
        self._attempts[attempt.hello.task] = attempt
        attempt.send(Welcome(settings=self.job.settings.to_json()))
        if self._draining:
            attempt.drain()

    def _hear(self, hello: Hello, message: Message) -> None:
        attempt = self._attempts.get(hello.task)
        if attempt is None or attempt.hello != hello:
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
            place = self._places.get(TopicPartition.parse(key))
            if place and place.owner == hello:
                place.stands(standing)
        for key, source_first, target_first, length in report.runs:
            place = self._places.get(TopicPartition.parse(key))
            if place and place.owner == hello:
                place.copied(source_first, target_first, length)

    def _end_lease(self, hello: Hello, ended: Ended) -> None:
        place = self._places.get(TopicPartition.parse(ended.partition))
        if place is None or place.owner != hello:
            return
        place.moved(ended.position, ended.expected)
        place.is_free(clean=ended.is_clean)
        if ended.how is How.CLOSED:
            return
        now = time.monotonic()
        self._tell(ended.how.value, place, ended.why)
        if ended.how in (How.OUT_OF_RANGE, How.SOURCE_GONE, How.TARGET_GONE):
            self._reopen(place)
        elif ended.how in (How.REFUSED, How.NOT_AUTHORIZED):
            self._rules.pop(place.target.topic, None)
            place.hold(ended.why, now, then=place.state)

    def _lose(self, hello: Hello, why: str) -> None:
        attempt = self._attempts.get(hello.task)
        if attempt is None or attempt.hello != hello:
            return
        del self._attempts[hello.task]
        owned = [place for place in self._places.values() if place.owner == hello]
        for place in owned:
            place.is_free(clean=False)
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
        del self._attempts[hello.task]
        for place in self._places.values():
            if place.owner == hello:
                place.is_free(clean=True)

    def _find_silent(self, now: float) -> None:
        for attempt in list(self._attempts.values()):
            if now - attempt.heard_at > self.job.silence_s:
                self._lose(attempt.hello, f"nothing heard for {self.job.silence_s:.0f} s")

    def _drain(self) -> None:
        self._draining = True
        self._end_epoch()

    def _end_epoch(self) -> None:
        for attempt in self._attempts.values():
            attempt.drain()

    def _set_rate(self, bytes_per_s: int) -> None:
        settings = replace(self.job.settings, bytes_per_s=bytes_per_s)
        self.job = replace(self.job, settings=settings)
        for attempt in self._attempts.values():
            attempt.send(Rate(bytes_per_s=bytes_per_s))

    # -- places -----------------------------------------------------------------------------------

    def _reopen(self, place: Place) -> None:
        """Look at both logs anew: what the ledger would say is what we know ourselves."""
        assert place.lease is not None
        clean = place.state is State.WAITING
        self._entries[place.source] = entry_of(place.lease, is_open=not clean)
        place.lease, place.state = None, State.WAITING

    def _settle_doubts(self, now: float) -> None:
        doubtful = [p for p in self._places.values() if p.state is State.DOUBTFUL]
        if doubtful:
            self._learn_rules(doubtful)
            self._takeover.settle(doubtful, self._rules, now)
            self._save([place for place in doubtful if place.state is State.WAITING], open_=False)

    def _grant_all(self, now: float) -> None:
        if self._draining:
            return
        for attempt in [a for a in self._attempts.values() if not a.is_leaving]:
            mine = [
                place
                for place in self._places.values()
                if place.state is State.WAITING and place.task == attempt.hello.task
            ]
            for at in range(0, len(mine), FIRST_GRANT_SIZE):
                self._grant(attempt, mine[at : at + FIRST_GRANT_SIZE], now)

    def _grant(self, attempt: Attempt, places: list[Place], now: float) -> None:
        self._open([place for place in places if place.lease is None], now)
        ready = [p for p in places if p.state is State.WAITING and p.lease is not None]
        self._learn_rules(ready)
        ready = [place for place in ready if self._has_rules(place, now)]
        if not ready:
            return
        self._save(ready, open_=True)
        leases = [place.lease for place in ready if place.lease]
        targets = {place.target.topic: self._json_rules(place) for place in ready}
        with self._lock:
            for place in ready:
                place.grant_to(attempt.hello)
        attempt.send(Grant(leases=leases, targets=targets))

    def _open(self, places: list[Place], now: float) -> None:
        if not places:
            return
        opened = self._openings.open(places, self._entries)
        with self._lock:
            for place, opening in opened.items():
                self._settle_opening(place, opening, now)

    def _settle_opening(self, place: Place, opening: Opening, now: float) -> None:
        place.end = opening.end
        if opening.trouble or opening.lease is None:
            place.hold(opening.trouble, now, then=State.WAITING)
            return
        place.settled(opening.lease)
        if opening.is_doubtful:
            place.is_free(clean=False)
        if opening.loss:
            self._suffer(place, opening.loss, now)

    def _suffer(self, place: Place, loss: Loss, now: float) -> None:
        """A loss is always told; the policy decides where to go on."""
        position = loss.goes_on_at(self.job.on_loss)
        decided = "copying stops" if position is None else f"going on at offset {position}"
        self._tell(
            loss.kind.value, place, f"{loss.text}; {decided}", (loss.lost_from, loss.lost_to)
        )
        if position is None:
            place.lease = None
            place.hold(
                f"{loss.text}; decide with the loss policy", now, then=State.WAITING, forever=True
            )
        else:
            place.relocated(position)

    def _learn_rules(self, places: list[Place]) -> None:
        unknown = {p.target.topic for p in places} - set(self._rules)
        if unknown:
            self._rules |= self._clusters.rules(unknown)

    def _has_rules(self, place: Place, now: float) -> bool:
        rules = self._rules[place.target.topic]
        if isinstance(rules, Target):
            return True
        del self._rules[place.target.topic]
        with self._lock:
            place.hold(f"target: {place.target.topic}: {rules}", now, then=State.WAITING)
        return False

    def _json_rules(self, place: Place) -> dict[str, object]:
        rules = self._rules[place.target.topic]
        assert isinstance(rules, Target)
        return target_to_json(rules)

    # -- the ledger and the world ------------------------------------------------------------------

    def _flush(self, now: float) -> None:
        self._flush_at = now + self.job.flush_every_s
        dirty = [place for place in self._places.values() if place.is_dirty and place.lease]
        self._save([p for p in dirty if p.state is State.LEASED], open_=True)
        self._save([p for p in dirty if p.state is State.WAITING], open_=False)

    def _save(self, places: list[Place], *, open_: bool) -> None:
        with self._lock:
            entries = {p.source: entry_of(p.lease, is_open=open_) for p in places if p.lease}
            for place in places:
                place.is_dirty = False
        if entries:
            self._ledger.save(entries)
            self._entries |= entries

    def _tell(self, kind: str, place: Place, text: str, lost: tuple[int, int] = (-1, -1)) -> None:
        log.warning("%s: %s: %s", place.source, kind, text)
        self._events.append(
            Event(
                at_ms=time.time_ns() // 1_000_000,
                kind=kind,
                partition=str(place.source),
                text=text,
                lost_from=lost[0],
                lost_to=lost[1],
            )
        )
