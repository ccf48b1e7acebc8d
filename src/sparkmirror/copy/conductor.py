"""The conductor: who may copy what, from where, and what to do when a lease ends.

Lives in the driver, in a thread of its own with an inbox. Tasks come, report and go (`reception`);
the conductor grants leases, remembers positions, takes partitions away from tasks that fell silent,
and before anybody else gets a partition whose lease did not end cleanly, fences it and finds out
where it stands.

    waiting ──grant──▶ leased ──clean end──▶ waiting (same identity, no fence)
       ▲                  └──anything else──▶ doubtful ──fence, reconcile──▶ waiting
       └──── after a while ──── held (a reason; all other partitions go on)

In exactly-once mode a lease belongs to the term of its task (`terms`), and what is doubtful goes on
at what was committed (`succession`).

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
from collections.abc import Callable

from sparkmirror.copy.attempts import Attempt, Send
from sparkmirror.copy.book import Book
from sparkmirror.copy.clusters import Clusters
from sparkmirror.copy.counterfoils import Counterfoils, Unclaimed
from sparkmirror.copy.events import Events
from sparkmirror.copy.fence import Fences, Overtaken
from sparkmirror.copy.granting import Granting
from sparkmirror.copy.job import Job
from sparkmirror.copy.ledger import Ledger
from sparkmirror.copy.messages import Hello, Message
from sparkmirror.copy.openings import Openings
from sparkmirror.copy.place import Place, State
from sparkmirror.copy.reception import Reception
from sparkmirror.copy.run_keeping import RunStore
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.copy.succession import Succession
from sparkmirror.copy.takeover import Takeover
from sparkmirror.copy.telling import Telling
from sparkmirror.copy.terms import Terms
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

TICK_S = 0.1


class Conductor:
    """Grants leases and keeps the ledger. Use: `start()`, feed events, `drain()`, `stop()`."""

    def __init__(self, job: Job, ledger: Ledger, runs: RunStore | None = None) -> None:
        """Without a store for runs, what was copied where is known only while this lives."""
        self._telling = Telling.of(job, runs)
        self._lock = threading.Lock()
        self._events = Events()
        self._counterfoils = Counterfoils(lambda: time.time_ns() // 1_000_000)
        self._clusters = Clusters.dial(job.settings)
        self._terms = Terms(self._clusters.target, job)
        writes_itself = self._terms.write if job.is_exactly_once else None
        self._book = Book(ledger, self._lock, writes_itself)
        self._succession = Succession(
            clusters=self._clusters,
            terms=self._terms,
            book=self._book,
            tell=self._events.tell,
            lock=self._lock,
        )
        fences = Fences(self._clusters.target, f"{job.group_id}-{job.connector}")
        self._openings = Openings(job, self._clusters, fences)
        self._granting = Granting(
            self._clusters,
            self._openings,
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
        self._reception = Reception(
            job=job,
            book=self._book,
            events=self._events,
            telling=self._telling,
            openings=self._openings,
            granting=self._granting,
            counterfoils=self._counterfoils,
        )
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="conductor", daemon=True)
        self._stopping = False
        self._failure: Exception | None = None
        self._flush_at = 0.0
        self._trouble = ""

    @property
    def job(self) -> Job:
        """What is copied, and how, by now."""
        return self._reception.job

    @property
    def _places(self) -> dict[TopicPartition, Place]:
        return self._reception.places

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: find both clusters, read the ledger, start the thread.

        Raises MirrorError, the first time within seconds; may be called again.
        """
        self._clusters.find(
            {place.source.topic for place in self._places.values()},
            {place.target.topic for place in self._places.values()},
        )
        self._book.load()
        if self.job.is_exactly_once or self._book.has_transactions:
            self._terms.begin()
            self._book.load()
            if not self.job.is_exactly_once:
                self._terms.end_hanging(self._book.committed(self._places.values()))
        self._telling.start()
        self._thread.start()

    def joined(self, hello: Hello, send: Send) -> None:
        """A task attempt has come; it gets its welcome and its leases through `send`."""
        self._inbox.put(lambda: self._reception.join(Attempt(hello, send, time.monotonic())))

    def said(self, hello: Hello, message: Message) -> None:
        """A task attempt has said something (Report, Ended, Done)."""
        self._inbox.put(lambda: self._reception.hear(hello, message))

    def left(self, hello: Hello) -> None:
        """A task attempt is gone, however it went."""
        self._inbox.put(lambda: self._reception.lose(hello, "its connection is gone"))

    def drain(self) -> None:
        """Have every task give everything back; positions are remembered as they do."""
        self._inbox.put(self._reception.drain)

    def end_epoch(self) -> None:
        """Have the tasks that are there give everything back, for those that come after them."""
        self._inbox.put(self._reception.end_epoch)

    def replan(self, job: Job) -> None:
        """Go on with another job of the same connector, on the same clusters.

        What stays with its task is not interrupted; what another task gets is given back first.
        """
        self._inbox.put(lambda: self._reception.replan(job))

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to so many bytes a second; 0 lifts the limit."""
        self._inbox.put(lambda: self._reception.set_rate(bytes_per_s))

    def snapshot(self) -> Snapshot:
        """Where everything stands, as of the last reports. Cheap; any thread."""
        with self._lock:
            return self._reception.snapshot()

    def runs(self, partition: TopicPartition) -> tuple[Run, ...]:
        """Which source offsets of a partition lie where on the target, as far as it is known."""
        with self._lock:
            return tuple(self._places[partition].runs)

    def is_drained(self) -> bool:
        """Whether `drain` was asked for and nothing is leased any more."""
        with self._lock:
            return self._reception.is_drained

    def close_books(self, epoch: int, *, landed: bool) -> list[Unclaimed]:
        """An epoch is over; returns the receipts that none of its attempts has handed in."""
        with self._lock:
            return self._counterfoils.close(epoch, landed=landed)

    def failure(self) -> Exception | None:
        """Why the conductor has ended by itself (another driver took over, a bug), if it has."""
        return self._failure

    def stop(self) -> None:
        """End the thread and hang up; what is not flushed is flushed. The ledger is closed."""
        self._stopping = True
        if self._thread.is_alive():
            self._thread.join(timeout=30)
        self._telling.stop()
        self._clusters.close()
        self._book.close()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._take_in()
                self._tick(time.monotonic())
            self._take_in()
            self._telling.flush(self._places.values())
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
                self._reception.find_silent(now)
                for place in self._places.values():
                    place.wake(now)
            self._settle_doubts(now)
            self._grant_all(now)
            self._telling.restore(self._places)
            if self._reception.is_draining or now >= self._flush_at:
                self._telling.flush(self._places.values())
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
        uncertain = [p for p in self._places.values() if p.state is State.DOUBTFUL]
        self._succession.settle(self._places.values())
        doubtful = [p for p in uncertain if p.state is State.DOUBTFUL and not p.is_void]
        if doubtful:
            self._takeover.settle(doubtful, self._granting.rules(doubtful), now)
            settled = [place for place in doubtful if place.state is State.WAITING]
            if self.job.is_exactly_once:
                with self._lock:
                    for place in settled:
                        place.goes_in_transactions()
            self._book.save(settled, is_open=False)
        with self._lock:
            for place in uncertain:
                if place.last_owner and place.state is State.WAITING:
                    self._counterfoils.add(place.last_owner, place)  # what it had not told

    def _grant_all(self, now: float) -> None:
        if self._reception.is_draining:
            return
        for attempt in self._reception.attempts.staying():
            mine = [
                place
                for place in self._places.values()
                if place.state is State.WAITING and place.task == attempt.hello.task
            ]
            if mine and self.job.is_exactly_once:
                mine = self._succession.within_term(attempt, mine, self._places.values(), now)
            if mine:
                self._granting.grant(attempt, mine, now, self._lock)
